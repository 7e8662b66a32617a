// Poisson counts with a latent Gaussian process log intensity.
data {
  int<lower=1> N;
  array[N] real x;
  array[N] int<lower=0> k;
}
transformed data {
  matrix[N, N] jitter = diag_matrix(rep_vector(1e-10, N));
}
parameters {
  real<lower=0> length_scale;
  real<lower=0> amplitude;
  vector[N] white;
}
transformed parameters {
  vector[N] log_rate = cholesky_decompose(gp_exp_quad_cov(x, amplitude, length_scale) + jitter)
                       * white;
}
model {
  white ~ std_normal();
  amplitude ~ normal(0, 2);
  length_scale ~ gamma(25, 4);
  k ~ poisson_log(log_rate);
}
