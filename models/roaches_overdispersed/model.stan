// Roaches in flats: Poisson regression with a lognormal effect of every flat.
data {
  int<lower=0> N;
  array[N] int<lower=0> y;
  vector[N] roach1;
  vector[N] treatment;
  vector[N] senior;
  vector<lower=0>[N] exposure2;
}
transformed data {
  vector[N] log_exposure = log(exposure2);
}
parameters {
  vector[4] beta;
  vector[N] lambda;
  real<lower=0> tau;
}
model {
  beta ~ normal(0, 5);
  tau ~ normal(0, 3);
  lambda ~ normal(0, tau);
  y ~ poisson_log(lambda + log_exposure + beta[1] + beta[2] * roach1 / 100
                  + beta[3] * treatment + beta[4] * senior);
}
