// gamma(5, 5).
parameters {
  real<lower=0> x;
}
model {
  x ~ gamma(5, 5);
}
