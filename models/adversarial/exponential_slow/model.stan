// An exponential distribution with mean a million.
parameters {
  real<lower=0> x;
}
model {
  x ~ exponential(1e-6);
}
