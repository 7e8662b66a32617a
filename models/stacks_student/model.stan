// Brownlee's stack-loss data, Student t errors, ridge prior on coefficients.
data {
  int<lower=0> N;
  int<lower=0> p;
  array[N] real Y;
  matrix[N, p] x;
}
transformed data {
  matrix[N, p] z;
  row_vector[p] mean_x;
  row_vector[p] sd_x;
  for (j in 1 : p) {
    mean_x[j] = mean(col(x, j));
    sd_x[j] = sd(col(x, j));
    for (i in 1 : N)
      z[i, j] = (x[i, j] - mean_x[j]) / sd_x[j];
  }
}
parameters {
  real beta0;
  vector[p] beta;
  real<lower=0> sigmasq;
  real<lower=0> phi;
}
transformed parameters {
  real<lower=0> sigma = sqrt(sigmasq);
  vector[N] mu = beta0 + z * beta;
}
model {
  beta0 ~ normal(0, 316);
  phi ~ gamma(0.01, 0.01);
  beta ~ normal(0, sqrt(phi));
  sigmasq ~ inv_gamma(.001, .001);
  Y ~ student_t(4, mu, sigma);
}
generated quantities {
  array[N] int outlier;
  vector[p] b;
  for (j in 1 : p)
    b[j] = beta[j] / sd_x[j];
  for (i in 1 : N)
    outlier[i] = abs((Y[i] - mu[i]) / sigma) > 2.5;
}
