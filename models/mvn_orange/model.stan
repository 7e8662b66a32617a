// Growth of five orange trees: logistic curves whose three coefficients are
// multivariate normal over trees.
data {
  int<lower=0> K;
  int<lower=0> N;
  vector[N] x;
  array[K] vector[N] Y;
}
parameters {
  vector[3] mu;
  vector<lower=0>[3] tau;
  cholesky_factor_corr[3] L;
  matrix[3, K] z;
  real<lower=0> sigma;
}
transformed parameters {
  matrix[3, K] theta = rep_matrix(mu, K) + diag_pre_multiply(tau, L) * z;
}
model {
  mu ~ normal([5, 2, -6]', [1, 1, 2]');
  tau ~ normal(0, 0.5);
  L ~ lkj_corr_cholesky(2);
  to_vector(z) ~ std_normal();
  sigma ~ normal(0, 20);
  for (k in 1 : K) {
    vector[N] curve = exp(theta[1, k])
                      ./ (1 + (exp(theta[2, k]) - 1) * exp(-exp(theta[3, k]) * x));
    Y[k] ~ normal(curve, sigma);
  }
}
