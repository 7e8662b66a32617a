// Counts with too many zeros.
data {
  array[80] int y;
}
parameters {
  real<lower=0, upper=1> theta;
  real<lower=0> lambda;
}
model {
  theta ~ beta(1, 1);
  lambda ~ gamma(2, 0.5);
  for (i in 1 : 80) {
    if (y[i] == 0) target += log_sum_exp(log(theta), log1m(theta) - lambda);
    else target += log1m(theta) + poisson_lpmf(y[i] | lambda);
  }
}
