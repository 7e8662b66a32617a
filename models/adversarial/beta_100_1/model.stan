// beta(100, 1).
parameters {
  real<lower=0, upper=1> x;
}
model {
  x ~ beta(100, 1);
}
