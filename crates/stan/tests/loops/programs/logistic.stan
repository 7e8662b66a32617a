data { int N; int K; matrix[N, K] X; array[N] int z; }
parameters { real a; vector[K] b; }
//// loops
model {
  a ~ normal(0, 1);
  b ~ normal(0, 1);
  for (n in 1:N) {
    real eta = a;
    for (k in 1:K) eta += X[n, k] * b[k];
    z[n] ~ bernoulli_logit(eta);
  }
}
//// vectors
model {
  a ~ normal(0, 1);
  b ~ normal(0, 1);
  z ~ bernoulli_logit(a + X * b);
}
