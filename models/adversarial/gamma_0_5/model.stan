// gamma(0.5, 0.5).
parameters {
  real<lower=0> x;
}
model {
  x ~ gamma(0.5, 0.5);
}
