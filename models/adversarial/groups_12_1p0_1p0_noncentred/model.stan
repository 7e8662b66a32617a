// 12 groups with effects of sd 1.0 seen with noise 1.0, noncentred.
transformed data {
  array[12] real y = {1.303, 1.266, 2.874, -1.103, 0.166, 0.068, 0.805, 4.617, 2.599, 1.516, 1.392, 3.137};
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
