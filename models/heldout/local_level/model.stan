// A local level of sixty steps, by its shocks.
data {
  vector[60] y;
}
parameters {
  vector[60] e;
  real<lower=0> q;
  real<lower=0> r;
}
model {
  vector[60] level = cumulative_sum(q * e);
  e ~ normal(0, 1);
  q ~ normal(0, 1);
  r ~ normal(0, 1);
  y ~ normal(level, r);
}
