// gamma(0.01, 0.01): nearly all mass at zero, rare huge values.
parameters {
  real<lower=0> x;
}
model {
  x ~ gamma(0.01, 0.01);
}
