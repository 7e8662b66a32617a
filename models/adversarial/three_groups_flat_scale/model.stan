// Three groups whose scale has a flat prior: it has no mean.
transformed data {
  vector[3] y = [12, -3, 20]';
  vector[3] se = [9, 10, 11]';
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[3] eta;
}
model {
  eta ~ normal(0, 1);
  y ~ normal(mu + tau * eta, se);
}
