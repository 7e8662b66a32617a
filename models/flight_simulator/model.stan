// Recoveries in a flight simulator: logistic regression with crossed treatments
// and airports.
data {
  int<lower=0> N;
  int<lower=1> n_airport;
  int<lower=1> n_treatment;
  array[N] int<lower=1, upper=n_airport> airport;
  array[N] int<lower=1, upper=n_treatment> treatment;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  real mu;
  vector[n_treatment] gamma;
  vector[n_airport] delta;
  real<lower=0> sd_gamma;
  real<lower=0> sd_delta;
}
model {
  mu ~ normal(0, 2);
  sd_gamma ~ normal(0, 1);
  sd_delta ~ normal(0, 2);
  gamma ~ std_normal();
  delta ~ std_normal();
  y ~ bernoulli_logit(mu + sd_gamma * gamma[treatment] + sd_delta * delta[airport]);
}
