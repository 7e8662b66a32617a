// A Gaussian process whose lengthscale has no prior.
transformed data {
  array[6] real x = {0, 1, 2, 3, 4, 5};
  vector[6] y = [0.1, -0.2, 0.05, 0.1, -0.1, 0.0]';
}
parameters {
  real<lower=0> l;
}
model {
  matrix[6, 6] K = add_diag(gp_exp_quad_cov(x, 1.0, l), 0.1);
  y ~ multi_normal(rep_vector(0, 6), K);
}
