data { int N; int K; matrix[N, K] X; array[N] vector[K] A; vector[N] y; }
parameters { real a; vector[K] b; real<lower=0> s; }
//// loops
model {
  for (n in 1:N) {
    y[n] ~ normal(a + X[n] * b, s);
    target += normal_lpdf(y[n] | dot_product(A[n], b), s);
    target += normal_lpdf(y[n] | dot_product(b, X[n]), s);
  }
}
//// vectors
model {
  y ~ normal(a + X * b, s);
  y ~ normal(X * b, s);
  y ~ normal(X * b, s);
}
