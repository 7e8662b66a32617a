// Lung function on exposure to dust, which is measured twice with errors, for forty workers.
data {
  matrix[40, 2] w;
  vector[40] y;
}
parameters {
  vector[40] dust;
  real mu;
  real<lower=0> spread;
  real<lower=0> error;
  real a;
  real b;
  real<lower=0> s;
}
model {
  dust ~ normal(mu, spread);
  mu ~ normal(0, 3);
  [spread, error, s] ~ exponential(1);
  a ~ normal(0, 3);
  b ~ normal(0, 2);
  for (k in 1 : 2) w[ : , k] ~ normal(dust, error);
  y ~ normal(a + b * dust, s);
}
