// Flight recovery: crossed groups and scenarios whose effects sum to zero.
data {
  int<lower=0> N;
  int<lower=0> n_groups;
  int<lower=0> n_scenarios;
  array[N] int<lower=1, upper=n_groups> group_id;
  array[N] int<lower=1, upper=n_scenarios> scenario_id;
  vector[N] y;
}
parameters {
  real mu;
  sum_to_zero_vector[n_groups] a;
  sum_to_zero_vector[n_scenarios] b;
  real<lower=0> sigma_a;
  real<lower=0> sigma_b;
  real<lower=0> sigma_y;
}
model {
  mu ~ normal(0.5, 0.5);
  a ~ normal(0, sigma_a);
  b ~ normal(0, sigma_b);
  sigma_a ~ normal(0, 0.5);
  sigma_b ~ normal(0, 0.5);
  sigma_y ~ normal(0, 0.5);
  y ~ normal(mu + a[group_id] + b[scenario_id], sigma_y);
}
