// Brownlee's stack-loss data, double exponential errors.
data {
  int<lower=0> N;
  int<lower=0> p;
  vector[N] Y;
  matrix[N, p] x;
}
transformed data {
  matrix[N, p] z;
  for (j in 1 : p) {
    z[, j] = (x[, j] - mean(x[, j])) / sd(x[, j]);
  }
}
parameters {
  real beta0;
  vector[p] beta;
  real<lower=0> sigma;
}
model {
  beta0 ~ normal(0, 100);
  beta ~ double_exponential(0, 10);
  sigma ~ gamma(2, 0.2);
  Y ~ double_exponential(z * beta + beta0, sigma);
}
