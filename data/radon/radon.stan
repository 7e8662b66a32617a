// Log radon in Minnesota homes: county intercepts explained by soil uranium,
// standardised county effects.
data {
  int<lower=1> N;
  int<lower=1> J;
  array[N] int<lower=1, upper=J> county;
  vector[N] u;  // log uranium of the home's county
  vector[N] x;  // 1 if measured on the first floor
  vector[N] y;  // log radon
}
parameters {
  real intercept;
  real b_floor;
  real b_uranium;
  real<lower=0> sd_county;
  real<lower=0> sd_home;
  vector[J] county_std;
}
transformed parameters {
  vector[J] level = intercept + sd_county * county_std;
}
model {
  vector[N] expected;
  for (home in 1 : N) {
    expected[home] = level[county[home]] + b_floor * x[home] + b_uranium * u[home];
  }
  intercept ~ normal(0, 10);
  b_floor ~ normal(0, 10);
  b_uranium ~ normal(0, 10);
  sd_county ~ normal(0, 1);
  sd_home ~ normal(0, 1);
  county_std ~ normal(0, 1);
  y ~ normal(expected, sd_home);
}
