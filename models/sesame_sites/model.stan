// Sesame Street: letter scores on predicted viewing and pre-test, sites as random
// effects and two settings.
data {
  int<lower=0> N;
  array[N] int<lower=1, upper=5> site;
  array[N] int<lower=1, upper=2> setting;
  vector[N] y;
  vector[N] watched_hat;
  vector[N] pretest;
}
parameters {
  real intercept;
  vector[3] beta;
  vector[5] site_effect;
  real<lower=0> sd_site;
  real<lower=0> sigma;
}
model {
  intercept ~ normal(20, 20);
  beta ~ normal(0, 10);
  sd_site ~ normal(0, 5);
  sigma ~ normal(0, 20);
  site_effect ~ normal(0, sd_site);
  y ~ normal(intercept + beta[1] * watched_hat + beta[2] * (pretest - 20)
             + beta[3] * (to_vector(setting) - 1.5) + site_effect[site], sigma);
}
