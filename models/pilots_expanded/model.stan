// Flight recovery by treatment and airport, parameter expansion: multipliers
// scale the raw effects of each batch.
data {
  int<lower=0> N;
  int<lower=1> n_airport;
  int<lower=1> n_treatment;
  array[N] int<lower=1, upper=n_airport> airport;
  array[N] int<lower=1, upper=n_treatment> treatment;
  vector[N] y;
}
parameters {
  real mu;
  vector[n_treatment] g_raw;
  vector[n_airport] d_raw;
  real<lower=0> xi_g;
  real<lower=0> xi_d;
  real<lower=0> sigma_g_raw;
  real<lower=0> sigma_d_raw;
  real<lower=0> sigma_y;
}
model {
  mu ~ normal(0, 1);
  xi_g ~ normal(0, 1);
  xi_d ~ normal(0, 1);
  sigma_g_raw ~ inv_gamma(3, 2);
  sigma_d_raw ~ inv_gamma(3, 2);
  sigma_y ~ normal(0, 1);
  g_raw ~ normal(0, sigma_g_raw);
  d_raw ~ normal(0, sigma_d_raw);
  y ~ normal(mu + xi_g * g_raw[treatment] + xi_d * d_raw[airport], sigma_y);
}
