// Eight schools with parameter expansion: a multiplier with a normal prior times
// effects whose precision has a gamma prior.
data {
  int<lower=0> N;
  vector[N] y;
  vector<lower=0>[N] sigma_y;
}
parameters {
  real mu;
  real xi;
  vector[N] eta;
  real<lower=0> tau_eta;
}
transformed parameters {
  vector[N] theta = mu + xi * eta;
}
model {
  mu ~ normal(0, 10);
  xi ~ normal(4, 2);
  tau_eta ~ gamma(4, 4);
  eta ~ normal(0, inv_sqrt(tau_eta));
  y ~ normal(theta, sigma_y);
}
