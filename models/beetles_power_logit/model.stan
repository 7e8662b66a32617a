// Beetles killed by carbon disulphide: a logistic curve raised to a power, which
// makes it asymmetric (Prentice 1976).
data {
  int<lower=0> N;
  array[N] int<lower=0> n;
  array[N] int<lower=0> r;
  vector[N] x;
}
transformed data {
  vector[N] dose = (x - 1.8) * 10;
}
parameters {
  real mu;
  real<lower=0> sigma;
  real<lower=0> power;
}
model {
  mu ~ normal(0, 2);
  sigma ~ lognormal(-1, 1);
  power ~ lognormal(0, 1);
  target += binomial_lpmf(r | n, pow(inv_logit((dose - mu) / sigma), power));
}
