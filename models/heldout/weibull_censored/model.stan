// Times to failure, censored at six.
data {
  vector[60] t;
  array[60] int seen;
}
parameters {
  real<lower=0> shape;
  real<lower=0> scale;
}
model {
  shape ~ gamma(2, 1);
  scale ~ gamma(2, 0.2);
  for (i in 1 : 60) {
    if (seen[i] == 1) target += weibull_lpdf(t[i] | shape, scale);
    else target += weibull_lccdf(t[i] | shape, scale);
  }
}
