// gamma(1, 1).
parameters {
  real<lower=0> x;
}
model {
  x ~ gamma(1, 1);
}
