// beta(0.1, 3).
parameters {
  real<lower=0, upper=1> x;
}
model {
  x ~ beta(0.1, 3);
}
