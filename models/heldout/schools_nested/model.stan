// Scores of pupils in forty schools of eight districts, effects nested and centred at the district.
data {
  array[240] int school;
  array[40] int district;
  vector[240] y;
}
parameters {
  real mu;
  vector[8] raw;
  vector[40] mean;
  real<lower=0> between;
  real<lower=0> within;
  real<lower=0> s;
}
model {
  mu ~ normal(0, 10);
  raw ~ normal(0, 1);
  between ~ normal(0, 1);
  within ~ gamma(3, 4);
  s ~ exponential(1);
  mean ~ normal((mu + between * raw)[district], within);
  y ~ normal(mean[school], s);
}
