// Log earnings on centred height with crossed ethnic groups and age groups and
// their interaction.
data {
  int<lower=0> N;
  int<lower=1> n_eth;
  int<lower=1> n_age;
  array[N] int<lower=1, upper=n_eth> eth;
  array[N] int<lower=1, upper=n_age> age;
  vector[N] height;  // centred
  vector[N] log_earn;
}
parameters {
  real intercept;
  real slope;
  vector[n_eth] of_eth;
  vector[n_age] of_age;
  matrix[n_eth, n_age] of_both;
  real<lower=0> sd_eth;
  real<lower=0> sd_age;
  real<lower=0> sd_both;
  real<lower=0> sigma;
}
model {
  intercept ~ normal(10, 5);
  slope ~ normal(0, 1);
  sd_eth ~ normal(0, 0.5);
  sd_age ~ normal(0, 0.5);
  sd_both ~ normal(0, 0.5);
  sigma ~ normal(0, 2);
  of_eth ~ std_normal();
  of_age ~ std_normal();
  to_vector(of_both) ~ std_normal();
  vector[N] expected = intercept + slope * height + sd_eth * of_eth[eth]
                       + sd_age * of_age[age];
  for (n in 1 : N) {
    expected[n] += sd_both * of_both[eth[n], age[n]];
  }
  log_earn ~ normal(expected, sigma);
}
