// CD4 percentage (root) of HIV-positive children over time: correlated intercepts
// and slopes.
data {
  int<lower=0> N;
  int<lower=1> J;
  array[N] int<lower=1, upper=J> person;
  vector[N] time;
  vector[N] y;
}
parameters {
  vector[2] gamma;
  vector<lower=0>[2] tau;
  cholesky_factor_corr[2] L;
  matrix[2, J] z;
  real<lower=0> sigma;
}
transformed parameters {
  matrix[J, 2] b = (diag_pre_multiply(tau, L) * z)';
}
model {
  gamma ~ normal(0, 10);
  tau ~ normal(0, 2);
  L ~ lkj_corr_cholesky(2);
  to_vector(z) ~ std_normal();
  sigma ~ normal(0, 2);
  y ~ normal(gamma[1] + b[person, 1] + (gamma[2] + b[person, 2]) .* time, sigma);
}
