// Log radon on floor, county uranium, and the share of first-floor measurements
// in the county; county intercepts vary, centred.
data {
  int<lower=0> N;
  int<lower=1> J;
  array[N] int<lower=1, upper=J> county;
  vector[N] u;
  vector[N] x;
  vector[N] x_mean;
  vector[N] y;
}
parameters {
  vector[J] a;
  vector[3] b;
  real mu_a;
  real<lower=0> sigma_a;
  real<lower=0> sigma_y;
}
model {
  mu_a ~ normal(0, 5);
  b ~ normal(0, 5);
  sigma_a ~ normal(0, 1);
  sigma_y ~ normal(0, 2);
  a ~ normal(mu_a, sigma_a);
  y ~ normal(a[county] + b[1] * u + b[2] * x + b[3] * x_mean, sigma_y);
}
