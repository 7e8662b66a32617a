// A scale with prior 1 / sigma whose group effects may all be zero.
transformed data {
  array[5] real y = {0.1, -0.2, 0.3, 0.0, 0.1};
}
parameters {
  real<lower=0> tau;
  vector[5] eta;
}
model {
  target += -log(tau);
  eta ~ std_normal();
  y ~ normal(tau * eta, 1);
}
