// gamma(0.05, 0.05): nearly all mass at zero, rare huge values.
parameters {
  real<lower=0> x;
}
model {
  x ~ gamma(0.05, 0.05);
}
