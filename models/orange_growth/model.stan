// Growth of five orange trees: logistic curves with tree effects, jointly
// normal.
data {
  int<lower=0> K;
  int<lower=0> N;
  array[N] int x;
  array[K, N] real Y;
}
parameters {
  array[K] vector[3] theta;
  vector[3] mu;
  cholesky_factor_corr[3] L;
  vector<lower=0>[3] tau;
  real<lower=0> sigma_C;
}
transformed parameters {
  array[K] vector[3] phi;
  for (k in 1 : K) {
    phi[k, 1] = exp(theta[k, 1]);
    phi[k, 2] = exp(theta[k, 2]) - 1;
    phi[k, 3] = -exp(theta[k, 3]);
  }
}
model {
  sigma_C ~ normal(0, 20);
  tau ~ normal(0, 1);
  L ~ lkj_corr_cholesky(2);
  mu[1] ~ normal(5, 1);
  mu[2] ~ normal(2, 1);
  mu[3] ~ normal(-6, 1);
  theta ~ multi_normal_cholesky(mu, diag_pre_multiply(tau, L));
  for (k in 1 : K) {
    for (n in 1 : N) {
      Y[k, n] ~ normal(phi[k, 1] / (1 + phi[k, 2] * exp(phi[k, 3] * (x[n] / 100.0))), sigma_C);
    }
  }
}
