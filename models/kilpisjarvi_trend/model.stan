// Summer temperature at Kilpisjarvi by year, priors given as data.
data {
  int<lower=0> N;
  vector[N] x;
  vector[N] y;
  real xpred;
  real pmualpha;
  real psalpha;
  real pmubeta;
  real psbeta;
}
transformed data {
  real first = min(x);
}
parameters {
  real start;
  real trend;
  real<lower=0> sigma;
}
model {
  start ~ normal(pmualpha, psalpha);
  trend ~ normal(pmubeta, psbeta);
  y ~ normal(start + trend * (x - first), sigma);
}
generated quantities {
  real future = normal_rng(start + trend * (xpred - first), sigma);
  vector[N] log_lik;
  for (i in 1 : N)
    log_lik[i] = normal_lpdf(y[i] | start + trend * (x[i] - first), sigma);
}
