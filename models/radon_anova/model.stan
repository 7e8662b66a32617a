// Log radon by county, an analysis of variance with the share of variation
// between counties as parameter.
data {
  int<lower=0> N;
  int<lower=1> J;
  array[N] int<lower=1, upper=J> county;
  vector[N] y;
}
parameters {
  vector[J] a;
  real mu;
  real<lower=0> total;
  real<lower=0, upper=1> share;
}
transformed parameters {
  real sigma_a = total * sqrt(share);
  real sigma_y = total * sqrt(1 - share);
}
model {
  mu ~ normal(0, 5);
  total ~ exponential(1);
  share ~ beta(1, 3);
  a ~ normal(mu, sigma_a);
  y ~ normal(a[county], sigma_y);
}
