// Food of alligators by size and lake, one alligator at a time, with effects
// that sum to zero over foods.
data {
  int<lower=0> I;
  int<lower=0> J;
  int<lower=0> K;
  array[I, J, K] int<lower=0> X;
}
transformed data {
  int N = 0;
  for (i in 1 : I) {
    for (j in 1 : J) {
      N += sum(X[i, j]);
    }
  }
  array[N] int food;
  array[N] int lake;
  array[N] int size_;
  {
    int n = 0;
    for (i in 1 : I) {
      for (j in 1 : J) {
        for (k in 1 : K) {
          for (m in 1 : X[i, j, k]) {
            n += 1;
            food[n] = k;
            lake[n] = i;
            size_[n] = j;
          }
        }
      }
    }
  }
}
parameters {
  vector[K - 1] alpha_raw;
  matrix[I, K] beta;
  matrix[J, K] gamma;
  real<lower=0> tau;
}
transformed parameters {
  vector[K] alpha = append_row(alpha_raw, -sum(alpha_raw));
}
model {
  alpha ~ normal(0, 3);
  to_vector(beta) ~ normal(0, tau);
  to_vector(gamma) ~ normal(0, tau);
  tau ~ exponential(1);
  for (n in 1 : N) {
    food[n] ~ categorical_logit(alpha + beta[lake[n]]' + gamma[size_[n]]');
  }
}
