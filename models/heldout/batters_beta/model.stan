// Hits of forty batters with chances of their own, which are beta distributed.
data {
  array[40] int tries;
  array[40] int hits;
}
parameters {
  vector<lower=0, upper=1>[40] chance;
  real<lower=0, upper=1> mu;
  real<lower=0> kappa;
}
model {
  mu ~ beta(2, 4);
  kappa ~ gamma(2, 0.04);
  chance ~ beta(mu * kappa, (1 - mu) * kappa);
  hits ~ binomial(tries, chance);
}
