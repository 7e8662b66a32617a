// A stationary autoregression of 1000 steps with coefficient 0.95.
parameters {
  vector[1000] x;
}
model {
  x[1] ~ normal(0, 3.202563076101742);
  x[2 : 1000] ~ normal(0.95 * x[1 : 999], 1);
}
