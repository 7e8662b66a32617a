// Premature heart beats before and after a drug: a mixture of cured and
// uncured patients given the total count.
data {
  int<lower=0> N;
  array[N] int<lower=0> x;
  array[N] int<lower=0> y;
  array[N] int<lower=0> t;
}
parameters {
  real alpha;
  real delta;
}
transformed parameters {
  real<lower=0, upper=1> theta = inv_logit(delta);
}
model {
  real p = inv_logit(alpha);
  alpha ~ normal(0, 10);
  delta ~ normal(0, 10);
  for (i in 1 : N) {
    if (y[i] == 0) {
      target += log(theta + (1 - theta) * pow(1 - p, t[i]));
    } else {
      target += log1m(theta) + binomial_lpmf(y[i] | t[i], p);
    }
  }
}
