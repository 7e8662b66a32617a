// Growth of 30 rats over five weeks: correlated intercepts and slopes from a
// Cholesky factor, standardised.
data {
  int<lower=0> N;
  int<lower=0> T;
  vector[T] x;
  real xbar;
  array[N] row_vector[T] y;
}
transformed data {
  row_vector[T] week = (x - xbar)' / 7;
}
parameters {
  vector[2] mu;
  vector<lower=0>[2] tau;
  cholesky_factor_corr[2] L;
  array[N] vector[2] z;
  real<lower=0> sigma;
}
model {
  mu ~ normal([250, 40]', 50);
  tau ~ normal(0, 20);
  L ~ lkj_corr_cholesky(1);
  sigma ~ normal(0, 10);
  matrix[2, 2] scale = diag_pre_multiply(tau, L);
  for (i in 1 : N) {
    z[i] ~ std_normal();
    vector[2] line = mu + scale * z[i];
    y[i] ~ normal(line[1] + line[2] * week, sigma);
  }
}
