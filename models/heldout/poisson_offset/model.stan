// Counts of fifty areas with exposures, negative binomial.
data {
  vector[50] e;
  vector[50] z;
  array[50] int y;
}
parameters {
  real a;
  real b;
  real<lower=0> phi;
}
model {
  a ~ normal(0, 2);
  b ~ normal(0, 1);
  phi ~ exponential(0.5);
  y ~ neg_binomial_2_log(a + b * z + log(e), phi);
}
