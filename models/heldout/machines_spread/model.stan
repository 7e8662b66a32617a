// Twenty-two machines that differ in the mean and in the spread of their products, both correlated.
data {
  array[154] int machine;
  vector[154] y;
}
parameters {
  vector[2] mu;
  vector<lower=0>[2] tau;
  cholesky_factor_corr[2] corr;
  matrix[2, 22] raw;
}
model {
  matrix[2, 22] own = rep_matrix(mu, 22) + diag_pre_multiply(tau, corr) * raw;
  mu ~ normal(0, 5);
  tau ~ normal(0, 1);
  corr ~ lkj_corr_cholesky(1);
  to_vector(raw) ~ normal(0, 1);
  y ~ normal(own[1, machine], exp(own[2, machine]));
}
