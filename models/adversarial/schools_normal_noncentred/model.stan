// Eight schools, noncentred, a half-normal scale.
transformed data {
  array[8] real y = {28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0};
  array[8] real s = {15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0};
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[8] eta;
}
transformed parameters {
  vector[8] theta = mu + tau * eta;
}
model {
  mu ~ normal(0, 5.0);
  tau ~ normal(0, 5);
  eta ~ std_normal();
  y ~ normal(theta, s);
}
