// Exam scores in 38 London schools: three correlated school effects and
// variance that depends on the intake score.
data {
  int<lower=0> N;
  int<lower=0> M;
  array[N] int<lower=1, upper=M> school;
  vector[N] LRT;
  matrix[N, 2] VR;
  vector[N] Gender;
  vector[N] Y;
}
transformed data {
  vector[N] lrt = LRT / 10;
}
parameters {
  vector[2] beta;
  real theta;
  real phi;
  vector[3] gamma;
  matrix[M, 3] z;
  vector<lower=0>[3] tau;
  cholesky_factor_corr[3] L;
}
transformed parameters {
  matrix[M, 3] alpha = rep_matrix(gamma', M) + z * diag_pre_multiply(tau, L)';
}
model {
  vector[N] mu = alpha[school, 1] + alpha[school, 2] .* lrt + alpha[school, 3] .* VR[ : , 1]
                 + beta[1] * VR[ : , 2] + beta[2] * Gender;
  beta ~ normal(0, 5);
  theta ~ normal(0, 2);
  phi ~ normal(0, 1);
  gamma ~ normal(0, 5);
  to_vector(z) ~ normal(0, 1);
  tau ~ exponential(1);
  L ~ lkj_corr_cholesky(2);
  Y ~ normal(mu, exp(-0.5 * (theta + phi * lrt)));
}
