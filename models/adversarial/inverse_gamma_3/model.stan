// An inverse gamma whose variance barely exists.
parameters {
  real<lower=0> x;
}
model {
  x ~ inv_gamma(3, 2);
}
