// A stationary autoregression of 100 steps with coefficient 0.95.
parameters {
  vector[100] x;
}
model {
  x[1] ~ normal(0, 3.202563076101742);
  x[2 : 100] ~ normal(0.95 * x[1 : 99], 1);
}
