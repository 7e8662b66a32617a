// Brownlee's stack-loss data, Student t errors, ridge prior on coefficients.
data {
  int<lower=0> N;
  int<lower=0> p;
  array[N] real Y;
  matrix[N, p] x;
}
transformed data {
  matrix[N, p] z = x;
  for (j in 1 : p) {
    z[ : , j] -= mean(x[ : , j]);
    z[ : , j] /= sd(x[ : , j]);
  }
}
parameters {
  real level;
  vector[p] beta;
  real<lower=0> var_;
  real<lower=0> ridge;
}
model {
  level ~ normal(0, 300);
  ridge ~ gamma(0.01, 0.01);
  beta ~ normal(0, sqrt(ridge));
  var_ ~ inv_gamma(0.001, 0.001);
  Y ~ student_t(4, level + z * beta, sqrt(var_));
}
generated quantities {
  int n_outliers = 0;
  for (i in 1 : N) {
    if (abs(Y[i] - level - z[i] * beta) > 2.5 * sqrt(var_))
      n_outliers += 1;
  }
}
