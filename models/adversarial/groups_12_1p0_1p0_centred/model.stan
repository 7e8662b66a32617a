// 12 groups with effects of sd 1.0 seen with noise 1.0, centred.
transformed data {
  array[12] real y = {0.609, 1.659, 0.848, 0.296, 1.945, 1.154, -0.319, 1.324, 1.373, 1.019, 2.322, 2.553};
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
