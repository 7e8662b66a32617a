// beta(2, 50).
parameters {
  real<lower=0, upper=1> x;
}
model {
  x ~ beta(2, 50);
}
