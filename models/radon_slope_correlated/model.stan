// Log radon with county intercepts and floor slopes, correlated through a
// Cholesky factor, standardised.
data {
  int<lower=1> N;
  int<lower=1> J;
  array[N] int<lower=1, upper=J> county;
  vector[N] x;
  vector[N] y;
}
parameters {
  matrix[2, J] z;
  vector[2] gamma;
  vector<lower=0>[2] tau;
  cholesky_factor_corr[2] L_Omega;
  real<lower=0> sigma;
}
transformed parameters {
  matrix[J, 2] beta = (rep_matrix(gamma, J) + diag_pre_multiply(tau, L_Omega) * z)';
}
model {
  to_vector(z) ~ std_normal();
  gamma ~ normal(0, 5);
  tau ~ cauchy(0, 2.5);
  L_Omega ~ lkj_corr_cholesky(2);
  sigma ~ exponential(1);
  y ~ normal(beta[county, 1] + beta[county, 2] .* x, sigma);
}
generated quantities {
  corr_matrix[2] Omega = multiply_lower_tri_self_transpose(L_Omega);
}
