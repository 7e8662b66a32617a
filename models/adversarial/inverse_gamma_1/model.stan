// An inverse gamma without a mean.
parameters {
  real<lower=0> x;
}
model {
  x ~ inv_gamma(1, 1);
}
