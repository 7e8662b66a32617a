// Twelve groups of five, standardised effects.
data {
  array[60] int g;
  vector[60] y;
}
parameters {
  real mu;
  real<lower=0> tau;
  real<lower=0> s;
  vector[12] eta;
}
model {
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 1);
  s ~ normal(0, 2);
  eta ~ normal(0, 1);
  y ~ normal(mu + tau * eta[g], s);
}
