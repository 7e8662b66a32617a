// Log pelts of hare and lynx (Hudson's Bay Company): a vector autoregression
// of order one with correlated shocks.
data {
  int<lower=2> N;
  array[N] vector<lower=0>[2] y;
}
transformed data {
  array[N] vector[2] log_y;
  for (n in 1 : N) {
    log_y[n] = log(y[n]);
  }
}
parameters {
  vector[2] c;
  matrix[2, 2] A;
  cholesky_factor_corr[2] L;
  vector<lower=0>[2] tau;
}
model {
  matrix[2, 2] L_Sigma = diag_pre_multiply(tau, L);
  array[N - 1] vector[2] mu;
  c ~ normal(0, 5);
  to_vector(A) ~ normal(0, 1);
  tau ~ lognormal(-1, 1);
  L ~ lkj_corr_cholesky(2.0);
  for (n in 1 : N - 1) {
    mu[n] = c + A * log_y[n];
  }
  log_y[2 : N] ~ multi_normal_cholesky(mu, L_Sigma);
}
generated quantities {
  vector[2] next = multi_normal_cholesky_rng(c + A * log_y[N], diag_pre_multiply(tau, L));
}
