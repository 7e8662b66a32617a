// Failures of ten power-plant pumps: Poisson with lognormal rates.
data {
  int<lower=0> N;
  array[N] int<lower=0> x;
  vector<lower=0>[N] t;
}
parameters {
  real mu;
  real<lower=0> sigma;
  vector<offset=mu, multiplier=sigma>[N] log_rate;
}
model {
  mu ~ normal(0, 3);
  sigma ~ normal(0, 2);
  log_rate ~ normal(mu, sigma);
  x ~ poisson_log(log_rate + log(t));
}
