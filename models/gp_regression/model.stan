// Gaussian process regression with a squared exponential kernel.
data {
  int<lower=1> N;
  array[N] real x;
  vector[N] y;
}
transformed data {
  vector[N] zero = rep_vector(0, N);
}
parameters {
  real<lower=0> length_scale;
  real<lower=0> amplitude;
  real<lower=0> noise;  // variance
}
model {
  matrix[N, N] K = gp_exp_quad_cov(x, amplitude, length_scale);
  for (i in 1 : N) {
    K[i, i] += noise;
  }
  length_scale ~ gamma(25, 4);
  amplitude ~ normal(0, 2);
  noise ~ normal(0, 1);
  y ~ multi_normal_cholesky(zero, cholesky_decompose(K));
}
