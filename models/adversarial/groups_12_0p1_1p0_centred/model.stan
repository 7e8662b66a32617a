// 12 groups with effects of sd 0.1 seen with noise 1.0, centred.
transformed data {
  array[12] real y = {0.215, -0.837, 1.15, 1.067, -0.206, 0.339, 1.14, -0.056, 0.864, 1.3, 1.1, 0.56};
  array[12] real s = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0};
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[12] theta;
}
model {
  mu ~ normal(0, 5.0);
  tau ~ exponential(1);
  theta ~ normal(mu, tau);
  y ~ normal(theta, s);
}
