// Effects of coaching in eight schools (Rubin 1981), with standardised school effects.
data {
  int<lower=0> J;
  vector[J] y; // estimated effect of coaching
  vector<lower=0>[J] sigma; // its standard error
}
parameters {
  real mu; // mean effect
  real<lower=0> tau; // spread of the effects between schools
  vector[J] eta; // standardised effects
}
transformed parameters {
  vector[J] theta = mu + tau * eta; // effects
}
model {
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 5);
  eta ~ normal(0, 1);
  y ~ normal(theta, sigma);
}
