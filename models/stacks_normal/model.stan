// Brownlee's stack-loss data, normal errors, predictors standardised.
data {
  int<lower=0> N;
  int<lower=0> p;
  vector[N] Y;
  matrix[N, p] x;
}
transformed data {
  matrix[N, p] z;
  for (j in 1 : p) {
    z[ : , j] = (x[ : , j] - mean(x[ : , j])) / sd(x[ : , j]);
  }
}
parameters {
  real beta0;
  vector[p] beta;
  real<lower=0> sigmasq;
}
model {
  beta0 ~ normal(0, 100);
  beta ~ normal(0, 100);
  sigmasq ~ inv_gamma(0.001, 0.001);
  Y ~ normal(beta0 + z * beta, sqrt(sigmasq));
}
