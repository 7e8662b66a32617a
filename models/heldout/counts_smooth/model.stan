// Counts at twenty-five times whose logarithmic rate is a Gaussian process, Matern 3/2.
data {
  vector[25] t;
  array[25] int y;
}
parameters {
  real a;
  real<lower=0> length;
  real<lower=0> size;
  vector[25] raw;
}
model {
  matrix[25, 25] cov = add_diag(gp_matern32_cov(to_array_1d(t), size, length), 1e-8);
  a ~ normal(0, 2);
  length ~ inv_gamma(4, 8);
  size ~ normal(0, 1);
  raw ~ normal(0, 1);
  y ~ poisson_log(a + cholesky_decompose(cov) * raw);
}
