// Poisson counts whose log intensity, a Gaussian process, is integrated out by Laplace's approximation.
functions {
  matrix covariance(array[] real x, real amplitude, real length_scale) {
    return add_diag(gp_exp_quad_cov(x, amplitude, length_scale), 1e-10);
  }
}
data {
  int<lower=1> N;
  array[N] real x;
  array[N] int<lower=0> k;
}
transformed data {
  array[N] int place = linspaced_int_array(N, 1, N);
}
parameters {
  real<lower=0> length_scale;
  real<lower=0> amplitude;
}
model {
  amplitude ~ normal(0, 2);
  length_scale ~ gamma(25, 4);
  target += laplace_marginal_poisson_log_lpmf(k | place, rep_vector(0, N), 1, covariance,
                                              (x, amplitude, length_scale));
}
