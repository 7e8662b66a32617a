// 40 groups with effects of sd 0.3 seen with noise 1.0, noncentred.
transformed data {
  array[40] real y = {0.712, -1.543, 0.908, -1.674, 0.677, 2.295, 0.541, 1.41, 0.609, 0.241, -0.18, 2.041, 0.514, 2.469, -0.577, 0.869, 1.396, 2.463, 2.593, 0.19, -0.123, -1.222, 2.329, 0.919, 0.134, 0.768, -1.563, -1.028, 1.632, 1.572, 1.159, 0.444, 1.233, 2.186, -0.002, 1.242, 0.283, 0.86, 0.939, 0.266};
  array[40] real s = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0};
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[40] eta;
}
transformed parameters {
  vector[40] theta = mu + tau * eta;
}
model {
  mu ~ normal(0, 5.0);
  tau ~ exponential(1);
  eta ~ std_normal();
  y ~ normal(theta, s);
}
