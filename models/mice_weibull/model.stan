// Survival of mice in four treatment groups: Weibull times, some censored.
data {
  int<lower=0> N_uncensored;
  int<lower=0> N_censored;
  int<lower=0> M;
  array[N_uncensored] int<lower=1, upper=M> group_uncensored;
  array[N_censored] int<lower=1, upper=M> group_censored;
  array[N_uncensored] real<lower=0> t_uncensored;
  array[N_censored] real<lower=0> censor_time;
}
parameters {
  real<lower=0> r;
  array[M] real beta;
}
model {
  array[N_uncensored] real scale_u;
  array[N_censored] real scale_c;
  for (n in 1 : N_uncensored) {
    scale_u[n] = exp(-beta[group_uncensored[n]] / r);
  }
  for (n in 1 : N_censored) {
    scale_c[n] = exp(-beta[group_censored[n]] / r);
  }
  r ~ exponential(0.1);
  beta ~ normal(0, 10);
  t_uncensored ~ weibull(r, scale_u);
  target += weibull_lccdf(censor_time | r, scale_c);
}
generated quantities {
  array[M] real median;
  for (m in 1 : M) {
    median[m] = pow(log(2) * exp(-beta[m]), 1 / r);
  }
}
