// beta(1, 30).
parameters {
  real<lower=0, upper=1> x;
}
model {
  x ~ beta(1, 30);
}
