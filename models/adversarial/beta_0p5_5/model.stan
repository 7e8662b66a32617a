// beta(0.5, 5).
parameters {
  real<lower=0, upper=1> x;
}
model {
  x ~ beta(0.5, 5);
}
