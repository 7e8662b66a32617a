// beta(6, 6).
parameters {
  real<lower=0, upper=1> x;
}
model {
  x ~ beta(6, 6);
}
