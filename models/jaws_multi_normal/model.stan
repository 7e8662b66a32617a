// Jaw bones of 20 boys at four ages: linear growth, unstructured covariance.
data {
  int<lower=0> N;
  int<lower=0> M;
  array[N] vector[M] Y;
  vector[M] age;
}
parameters {
  real beta0;
  real beta1;
  cov_matrix[M] Sigma;
}
transformed parameters {
  vector[M] mu = beta0 + beta1 * age;
}
model {
  beta0 ~ normal(0, 32);
  beta1 ~ normal(0, 32);
  Sigma ~ inv_wishart(M, diag_matrix(rep_vector(1, M)));
  Y ~ multi_normal(mu, Sigma);
}
