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
  real<lower=0> shape;
  vector[M] log_scale;
}
model {
  vector[M] scale = exp(log_scale);
  shape ~ exponential(0.1);
  log_scale ~ normal(3, 1);
  t_uncensored ~ weibull(shape, scale[group_uncensored]);
  target += weibull_lccdf(censor_time | shape, scale[group_censored]);
}
generated quantities {
  vector[M] median_life = exp(log_scale + log(log(2)) / shape);
}
