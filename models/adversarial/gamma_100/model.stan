// gamma(100, 100).
parameters {
  real<lower=0> x;
}
model {
  x ~ gamma(100, 100);
}
