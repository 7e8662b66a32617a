// Antibody titres of vaccinated children over log time: varying lines with
// the baseline titre measured with error.
data {
  int<lower=0> N;
  int<lower=0> N1;
  array[N1] int<lower=1, upper=N> idxn1;
  vector[N1] Yvec1;
  vector[N1] tvec1;
  vector[N] y0;
}
transformed data {
  real t_mean = 6.5;
  real y0_mean = mean(y0);
}
parameters {
  real<lower=0> sigma_y;
  real<lower=0> sigma_alpha;
  real<lower=0> sigma_beta;
  real<lower=0> sigma_mu0;
  real gamma;
  real alpha0;
  real beta0;
  real theta;
  vector[N] mu0;
  vector[N] alpha;
  vector[N] beta;
}
model {
  vector[N1] m;
  for (n in 1 : N1) {
    int i = idxn1[n];
    m[n] = alpha[i] + beta[i] * (tvec1[n] - t_mean) + gamma * (mu0[i] - y0_mean);
  }
  Yvec1 ~ normal(m, sigma_y);
  mu0 ~ normal(theta, sigma_mu0);
  y0 ~ normal(mu0, sigma_y);
  alpha ~ normal(alpha0, sigma_alpha);
  beta ~ normal(beta0, sigma_beta);
  sigma_y ~ cauchy(0, 2);
  sigma_alpha ~ cauchy(0, 2);
  sigma_beta ~ cauchy(0, 2);
  sigma_mu0 ~ cauchy(0, 2);
  alpha0 ~ normal(0, 10);
  beta0 ~ normal(0, 10);
  gamma ~ normal(0, 10);
  theta ~ normal(0, 10);
}
