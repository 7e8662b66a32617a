// Growth of 30 rats, intercept and slope jointly normal with an inverse
// Wishart prior on their covariance.
data {
  int<lower=0> N;
  int<lower=0> T;
  array[T] real x;
  array[N, T] real y;
  cov_matrix[2] S;
}
parameters {
  array[N] vector[2] beta;
  vector[2] mu_beta;
  real<lower=0> sigma_y;
  cov_matrix[2] Sigma_beta;
}
model {
  sigma_y ~ cauchy(0, 10);
  mu_beta ~ normal(0, 100);
  Sigma_beta ~ inv_wishart(3, S);
  beta ~ multi_normal(mu_beta, Sigma_beta);
  for (n in 1 : N) {
    for (t in 1 : T) {
      y[n, t] ~ normal(beta[n, 1] + beta[n, 2] * x[t], sigma_y);
    }
  }
}
