// Accidents of sixty years whose rate changes once, the year of the change summed over.
data {
  array[60] int y;
}
parameters {
  real<lower=0> early;
  real<lower=0> late;
}
model {
  vector[59] change;
  for (k in 1 : 59) change[k] = poisson_lpmf(y[1 : k] | early) + poisson_lpmf(y[k + 1 : 60] | late);
  early ~ gamma(2, 1);
  late ~ gamma(2, 1);
  target += log_sum_exp(change) - log(59);
}
