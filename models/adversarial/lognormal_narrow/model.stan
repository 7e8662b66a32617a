// A narrow lognormal.
parameters {
  real<lower=0> x;
}
model {
  x ~ lognormal(5, 0.1);
}
