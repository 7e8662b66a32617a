// A lognormal of scale 1.5.
parameters {
  real<lower=0> x;
}
model {
  x ~ lognormal(0, 1.5);
}
