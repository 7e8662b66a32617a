// Infections of forty-five days by a renewal equation whose reproduction number walks on the logarithmic scale.
data {
  vector[10] serial;
  array[50] int y;
}
parameters {
  real first;
  vector[44] step;
  real<lower=0> q;
  real<lower=0> phi;
}
model {
  vector[45] level = first + append_row(0, cumulative_sum(q * step));
  first ~ normal(0, 0.5);
  step ~ normal(0, 1);
  q ~ normal(0, 0.3);
  phi ~ gamma(2, 0.1);
  for (i in 6 : 50) {
    int k = min(10, i - 1);
    real past = 0;
    for (j in 1 : k) past += y[i - j] * serial[j];
    y[i] ~ neg_binomial_2_log(level[i - 5] + log(past / sum(serial[1 : k]) + 1e-3), phi);
  }
}
