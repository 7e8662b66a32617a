// An inverse gamma.
parameters {
  real<lower=0> x;
}
model {
  x ~ inv_gamma(5, 4);
}
