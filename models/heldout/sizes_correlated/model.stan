// Four measurements of sixty skulls, jointly normal with a prior on correlations.
data {
  matrix[60, 4] y;
}
parameters {
  vector[4] mu;
  vector<lower=0>[4] s;
  cholesky_factor_corr[4] corr;
}
model {
  mu ~ normal(0, 5);
  s ~ exponential(1);
  corr ~ lkj_corr_cholesky(1.5);
  for (i in 1 : 60) y[i]' ~ multi_normal_cholesky(mu, diag_pre_multiply(s, corr));
}
