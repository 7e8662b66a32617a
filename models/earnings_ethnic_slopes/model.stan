// Log earnings on centred height, intercepts and slopes varying over four
// ethnic groups.
data {
  int<lower=0> N;
  int<lower=1> n_eth;
  array[N] int<lower=1, upper=n_eth> eth;
  vector[N] height;  // centred
  vector[N] log_earn;
}
parameters {
  vector[2] mean_effect;
  vector<lower=0>[2] sd_effect;
  matrix[n_eth, 2] effect;
  real<lower=0> sigma;
}
model {
  mean_effect ~ normal(0, 10);
  sd_effect ~ normal(0, 1);
  sigma ~ normal(0, 1);
  for (k in 1 : 2) {
    effect[ : , k] ~ normal(mean_effect[k], sd_effect[k]);
  }
  log_earn ~ normal(effect[eth, 1] + effect[eth, 2] .* height, sigma);
}
