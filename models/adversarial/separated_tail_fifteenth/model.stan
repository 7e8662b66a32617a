// A precision that the data determine, and a separated tail mode with a fifteenth of the mass in which they do not.
transformed data {
  vector[6] y = [-0.9, 0.045, 1.53, -1.215, 2.97, -2.34]';
}
parameters {
  real<lower=0> precision;
  vector[6] effect;
}
transformed parameters {
  real log_precision = log(precision);
  real scale = inv_sqrt(precision);
}
model {
  precision ~ gamma(0.001, 0.001);
  effect ~ normal(0, scale);
  y ~ normal(effect, 1);
}
