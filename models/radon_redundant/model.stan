// Log radon by county with a redundant mean of the county effects, which only
// weak priors tell from the overall level.
data {
  int<lower=0> N;
  int<lower=1> J;
  array[N] int<lower=1, upper=J> county;
  vector[N] y;
}
parameters {
  vector[J] eta_std;
  real level;
  real mu_eta;
  real<lower=0> sigma_eta;
  real<lower=0> sigma_y;
}
transformed parameters {
  vector[J] eta = 100 * mu_eta + sigma_eta * eta_std;
}
model {
  level ~ normal(0, 1);
  mu_eta ~ normal(0, 1);
  sigma_eta ~ normal(0, 5);
  sigma_y ~ normal(0, 5);
  eta_std ~ std_normal();
  y ~ normal(100 * level + eta[county], sigma_y);
}
