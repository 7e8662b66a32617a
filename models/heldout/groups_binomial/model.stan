// Shares of twenty groups, centred effects.
data {
  array[20] int n;
  array[20] int y;
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[20] a;
}
model {
  mu ~ normal(0, 2);
  tau ~ normal(0, 1);
  a ~ normal(mu, tau);
  y ~ binomial_logit(n, a);
}
