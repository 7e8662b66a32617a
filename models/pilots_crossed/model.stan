// Flight recovery: crossed groups and scenarios.
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
  vector[n_groups] group_effect;
  vector[n_scenarios] scenario_effect;
  vector<lower=0>[3] s;
}
model {
  mu ~ normal(0.5, 0.5);
  s ~ normal(0, 0.5);
  group_effect ~ normal(0, s[1]);
  scenario_effect ~ normal(0, s[2]);
  for (i in 1 : N)
    y[i] ~ normal(mu + group_effect[group_id[i]] + scenario_effect[scenario_id[i]], s[3]);
}
