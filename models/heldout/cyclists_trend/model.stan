// Cyclists counted on a hundred and sixty days: a trend that walks, days of the week, and overdispersion.
data {
  array[160] int day;
  array[160] int y;
}
parameters {
  real mu;
  vector[159] step;
  vector[6] week;
  real<lower=0> q;
  real<lower=0> phi;
}
model {
  vector[160] trend = append_row(0, cumulative_sum(q * step));
  vector[7] effect = append_row(0, week);
  mu ~ normal(3, 2);
  step ~ normal(0, 1);
  week ~ normal(0, 1);
  q ~ normal(0, 0.3);
  phi ~ gamma(2, 0.05);
  y ~ neg_binomial_2_log(mu + trend + effect[day], phi);
}
