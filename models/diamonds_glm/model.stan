// Log price of diamonds on many columns, one of which nearly repeats another;
// centred design and the fused density.
data {
  int<lower=1> N;
  vector[N] Y;
  int<lower=2> K;
  matrix[N, K] X;  // the first column is the intercept
}
transformed data {
  int Kc = K - 1;
  matrix[N, Kc] Xc;
  vector[Kc] means_X;
  for (i in 2 : K) {
    means_X[i - 1] = mean(X[, i]);
    Xc[, i - 1] = X[, i] - means_X[i - 1];
  }
}
parameters {
  vector[Kc] b;
  real Intercept;
  real<lower=0> sigma;
}
model {
  b ~ normal(0, 1);
  Intercept ~ student_t(3, 8, 10);
  sigma ~ student_t(3, 0, 10);
  Y ~ normal_id_glm(Xc, Intercept, b, sigma);
}
generated quantities {
  real b_Intercept = Intercept - dot_product(means_X, b);
}
