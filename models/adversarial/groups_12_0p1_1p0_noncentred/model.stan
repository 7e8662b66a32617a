// 12 groups with effects of sd 0.1 seen with noise 1.0, noncentred.
transformed data {
  array[12] real y = {0.083, -0.481, -0.682, -0.712, 0.402, 1.995, 1.24, 0.415, -0.03, 0.531, 0.599, 0.546};
  array[12] real s = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0};
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[12] eta;
}
transformed parameters {
  vector[12] theta = mu + tau * eta;
}
model {
  mu ~ normal(0, 5.0);
  tau ~ exponential(1);
  eta ~ std_normal();
  y ~ normal(theta, s);
}
