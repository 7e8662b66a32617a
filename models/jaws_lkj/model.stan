// Jaw bones of 20 boys at four ages: scales and a Cholesky correlation factor.
data {
  int<lower=0> N;
  int<lower=0> M;
  array[N] vector[M] Y;
  vector[M] age;
}
transformed data {
  vector[M] c_age = age - mean(age);
}
parameters {
  real beta0;
  real beta1;
  vector<lower=0>[M] tau;
  cholesky_factor_corr[M] L;
}
model {
  beta0 ~ normal(50, 10);
  beta1 ~ normal(0, 5);
  tau ~ exponential(0.2);
  L ~ lkj_corr_cholesky(1.5);
  Y ~ multi_normal_cholesky(beta0 + beta1 * c_age, diag_pre_multiply(tau, L));
}
generated quantities {
  matrix[M, M] Sigma = multiply_lower_tri_self_transpose(diag_pre_multiply(tau, L));
}
