// Ten slopes of a regression of fifty rows, each under a mixture of a narrow and a wide normal.
data {
  matrix[50, 10] x;
  vector[50] y;
}
parameters {
  real a;
  vector[10] b;
  real<lower=0> s;
  real<lower=0, upper=1> w;
}
model {
  a ~ normal(0, 2);
  s ~ exponential(1);
  w ~ beta(1, 3);
  for (j in 1 : 10) target += log_mix(w, normal_lpdf(b[j] | 0, 1), normal_lpdf(b[j] | 0, 0.1));
  y ~ normal(a + x * b, s);
}
