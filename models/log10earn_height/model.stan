// Decimal logarithm of earnings on height in inches.
data {
  int<lower=0> N;
  vector<lower=0>[N] earn;
  vector<lower=0>[N] height;
}
parameters {
  real intercept;
  real slope;
  real<lower=0> sigma;
}
model {
  log10(earn) ~ normal(intercept + slope * height, sigma);
}
