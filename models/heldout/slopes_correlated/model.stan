// Intercepts and slopes of fifteen groups, correlated.
data {
  array[90] int g;
  vector[90] z;
  vector[90] y;
}
parameters {
  vector[2] mu;
  vector<lower=0>[2] tau;
  cholesky_factor_corr[2] corr;
  matrix[2, 15] eta;
  real<lower=0> s;
}
model {
  matrix[2, 15] u = diag_pre_multiply(tau, corr) * eta;
  mu ~ normal(0, 2);
  tau ~ normal(0, 1);
  corr ~ lkj_corr_cholesky(2);
  to_vector(eta) ~ normal(0, 1);
  s ~ normal(0, 1);
  for (i in 1 : 90) y[i] ~ normal(mu[1] + u[1, g[i]] + (mu[2] + u[2, g[i]]) * z[i], s);
}
