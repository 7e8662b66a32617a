// Two-parameter logistic item response model: I items answered by J persons.
data {
  int<lower=0> I;
  int<lower=0> J;
  array[I, J] int<lower=0, upper=1> y;
}
parameters {
  vector[J] ability;
  vector<lower=0>[I] discrimination;
  vector[I] difficulty;
  real mean_difficulty;
  real<lower=0> sd_ability;
  real<lower=0> sd_log_discrimination;
  real<lower=0> sd_difficulty;
}
model {
  mean_difficulty ~ normal(0, 5);
  sd_ability ~ cauchy(0, 2);
  sd_log_discrimination ~ cauchy(0, 2);
  sd_difficulty ~ cauchy(0, 2);
  ability ~ normal(0, sd_ability);
  discrimination ~ lognormal(0, sd_log_discrimination);
  difficulty ~ normal(mean_difficulty, sd_difficulty);
  for (item in 1 : I) {
    y[item] ~ bernoulli_logit(discrimination[item] * (ability - difficulty[item]));
  }
}
