// Beta blockers after heart attacks: meta-analysis of 22 trials on the log
// odds scale with Student t effects.
data {
  int<lower=0> N;
  array[N] int<lower=0> rt;
  array[N] int<lower=0> nt;
  array[N] int<lower=0> rc;
  array[N] int<lower=0> nc;
}
parameters {
  real d;
  real<lower=0> sigma;
  vector[N] mu;
  vector[N] delta;
  real delta_new;
}
model {
  d ~ normal(0, 1000);
  sigma ~ inv_gamma(2, 0.2);
  mu ~ normal(0, 3);
  delta ~ student_t(4, d, sigma);
  delta_new ~ student_t(4, d, sigma);
  rt ~ binomial_logit(nt, mu + delta);
  rc ~ binomial_logit(nc, mu);
}
