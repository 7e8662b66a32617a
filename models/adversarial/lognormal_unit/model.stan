// A lognormal.
parameters {
  real<lower=0> x;
}
model {
  x ~ lognormal(0, 1);
}
