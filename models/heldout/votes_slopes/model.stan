// Votes in twenty towns: an intercept and two slopes vary over towns, correlated.
data {
  array[280] int town;
  matrix[280, 3] x;
  array[280] int y;
}
parameters {
  vector[3] mu;
  vector<lower=0>[3] tau;
  cholesky_factor_corr[3] corr;
  matrix[3, 20] raw;
}
model {
  matrix[20, 3] own = rep_matrix(mu', 20) + (diag_pre_multiply(tau, corr) * raw)';
  mu ~ normal(0, 2);
  tau ~ normal(0, 1);
  corr ~ lkj_corr_cholesky(2);
  to_vector(raw) ~ normal(0, 1);
  y ~ bernoulli_logit(rows_dot_product(x, own[town]));
}
