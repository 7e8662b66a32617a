// Regression of shares.
data {
  vector[70] z;
  vector[70] y;
}
parameters {
  real a;
  real b;
  real<lower=0> phi;
}
model {
  a ~ normal(0, 2);
  b ~ normal(0, 2);
  phi ~ gamma(2, 0.1);
  y ~ beta_proportion(inv_logit(a + b * z), phi);
}
