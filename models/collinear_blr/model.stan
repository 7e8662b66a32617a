// Linear regression whose columns differ by orders of magnitude.
data {
  int<lower=0> D;
  int<lower=0> N;
  matrix[N, D] X;
  vector[N] y;
}
parameters {
  vector[D] beta;
  real<lower=0> sigma;
}
model {
  target += normal_lpdf(beta | 0, 10);
  target += normal_lpdf(sigma | 0, 10) - normal_lccdf(0 | 0, 10);
  target += normal_lpdf(y | X * beta, sigma);
}
