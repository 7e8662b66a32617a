// Two groups under a flat prior on their scale.
transformed data {
  array[2] real y = {1.0, 2.0};
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[2] eta;
}
model {
  eta ~ std_normal();
  y ~ normal(mu + tau * eta, 1);
}
