// A half-Cauchy distribution: no mean.
parameters {
  real<lower=0> x;
}
model {
  x ~ cauchy(0, 1);
}
