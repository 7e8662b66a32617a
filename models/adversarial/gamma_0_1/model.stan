// gamma(0.1, 0.1): a pole at zero and rare large values.
parameters {
  real<lower=0> x;
}
model {
  x ~ gamma(0.1, 0.1);
}
