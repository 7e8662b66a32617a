// A Gaussian process at thirty points.
data {
  vector[30] t;
  vector[30] y;
}
parameters {
  real<lower=0> rho;
  real<lower=0> alpha;
  real<lower=0> s;
}
model {
  matrix[30, 30] k = gp_exp_quad_cov(to_array_1d(t), alpha, rho) + diag_matrix(rep_vector(square(s) + 1e-9, 30));
  rho ~ inv_gamma(4, 6);
  alpha ~ normal(0, 1.5);
  s ~ normal(0, 1);
  y ~ multi_normal_cholesky(rep_vector(0, 30), cholesky_decompose(k));
}
