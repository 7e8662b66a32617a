// Stops by precinct and ethnic group in New York, overdispersed counts with
// precinct effects.
data {
  int<lower=0> N;
  int<lower=0> n_eth;
  int<lower=0> n_precint;
  array[N] int<lower=1, upper=n_eth> eth;
  array[N] int<lower=1, upper=n_precint> precint;
  array[N] int<lower=0> stops;
  vector[N] log_arrests;
}
parameters {
  real mu;
  vector[n_eth - 1] b_eth_free;
  vector[n_precint] b_precint_raw;
  real<lower=0> sigma;
  real<lower=0> phi;
}
transformed parameters {
  vector[n_eth] b_eth = append_row(b_eth_free, -sum(b_eth_free));
}
model {
  mu ~ normal(0, 5);
  b_eth ~ normal(0, 2);
  b_precint_raw ~ normal(0, 1);
  sigma ~ normal(0, 1);
  phi ~ exponential(0.1);
  stops ~ neg_binomial_2(exp(mu + log_arrests + b_eth[eth] + sigma * b_precint_raw[precint]), phi);
}
