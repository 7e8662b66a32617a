// Growth of 30 rats, intercept and slope correlated, on standardised age.
data {
  int<lower=0> N;
  int<lower=0> T;
  vector[T] x;
  matrix[N, T] y;
}
transformed data {
  vector[T] z = (x - mean(x)) / sd(x);
}
parameters {
  matrix[2, N] eta;
  vector[2] mu;
  vector<lower=0>[2] tau;
  corr_matrix[2] Omega;
  real<lower=0> sigma;
}
transformed parameters {
  matrix[N, 2] beta;
  {
    matrix[2, 2] L = cholesky_decompose(quad_form_diag(Omega, tau));
    beta = rep_matrix(mu', N) + (L * eta)';
  }
}
model {
  to_vector(eta) ~ normal(0, 1);
  mu[1] ~ normal(240, 50);
  mu[2] ~ normal(60, 50);
  tau ~ student_t(4, 0, 30);
  Omega ~ lkj_corr(2);
  sigma ~ normal(0, 20);
  for (t in 1 : T) {
    y[, t] ~ normal(beta[, 1] + beta[, 2] * z[t], sigma);
  }
}
