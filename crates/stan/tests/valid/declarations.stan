data {
  simplex[3] s;
  array[2] simplex[3] s2;
  unit_vector[3] u;
  ordered[3] o;
  positive_ordered[3] po;
  cov_matrix[3] c;
  corr_matrix[3] r;
  cholesky_factor_corr[3] l;
  cholesky_factor_cov[3] m;
  cholesky_factor_cov[3,4] m2;
  sum_to_zero_vector[3] z;
  sum_to_zero_matrix[3,4] zm;
  column_stochastic_matrix[2,3] cs;
  row_stochastic_matrix[2,3] rs;
}
// ----
data {
  tuple(real<lower=0>, array[2] simplex[3]) t;
  array[3] tuple(int, vector[2]) t2;
}
// ----
data {
  int N;
}
transformed data {
  int M = N;
  vector[M] x;
}
parameters {
  vector[M] y;
}
model {
  int K = 2;
  vector[K] z;
}
// ----
data {
  array[2] int n;
}
model {
  n ~ poisson(2.5) T[1,];
  n ~ poisson(2.5) T[1,3];
}
// ----
data {
  real<lower=0, upper=1> x;
  real<upper=1, lower=0> y;
}
// ----
data {
  int<lower=0> J;
  array[J] real y;
  array[J] real<lower=0> sigma;
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[J] eta;
}
transformed parameters {
  vector[J] theta = mu + tau * eta;
}
model {
  eta ~ std_normal();
  y ~ normal(theta, sigma);
}
generated quantities {
  vector[J] log_lik;
  for (j in 1:J) {
    log_lik[j] = normal_lpdf(y[j] | theta[j], sigma[j]);
  }
}
// ----
data {
  int N;
  array[N] real x;
  vector[N] y;
}
transformed data {
  vector[N] zero = rep_vector(0, N);
}
parameters {
  real<lower=0> rho;
  real<lower=0> alpha;
  real<lower=0> sigma;
}
model {
  matrix[N, N] K = gp_exp_quad_cov(x, alpha, rho) + diag_matrix(rep_vector(square(sigma), N));
  y ~ multi_normal_cholesky(zero, cholesky_decompose(K));
  rho ~ inv_gamma(5, 5);
  alpha ~ std_normal();
  sigma ~ std_normal();
}
// ----
data {
  int K;
  int N;
  vector[N] y;
}
parameters {
  simplex[K] w;
  ordered[K] mu;
  vector<lower=0>[K] s;
}
model {
  for (n in 1:N) {
    vector[K] lp = log(w);
    for (k in 1:K) {
      lp[k] += normal_lpdf(y[n] | mu[k], s[k]);
    }
    target += log_sum_exp(lp);
  }
  mu ~ normal(0, 5);
  s ~ lognormal(0, 1);
  w ~ dirichlet(rep_vector(2, K));
}
