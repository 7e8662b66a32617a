// CD4 percentage (root) of HIV-positive children over time: varying intercepts
// and slopes, one row of effects per child.
data {
  int<lower=0> N;
  int<lower=0> J;
  array[N] int<lower=1, upper=J> person;
  vector[N] time;
  vector[N] y;
}
parameters {
  vector[J] a1_raw;
  vector[J] a2_raw;
  real mu_a1;
  real mu_a2;
  real<lower=0> sigma_a1;
  real<lower=0> sigma_a2;
  real<lower=0> sigma_y;
}
model {
  vector[J] a1 = mu_a1 + sigma_a1 * a1_raw;
  vector[J] a2 = mu_a2 + sigma_a2 * a2_raw;
  vector[N] y_hat;
  for (i in 1 : N) {
    y_hat[i] = a1[person[i]] + a2[person[i]] * time[i];
  }
  mu_a1 ~ normal(5, 3);
  mu_a2 ~ normal(0, 2);
  {sigma_a1, sigma_a2, sigma_y} ~ normal(0, 2);
  a1_raw ~ normal(0, 1);
  a2_raw ~ normal(0, 1);
  y ~ normal(y_hat, sigma_y);
}
