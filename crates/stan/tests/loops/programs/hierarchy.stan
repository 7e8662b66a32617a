data { int N; int K; int G; matrix[N, K] X; array[N] int z; array[N] int<lower=1, upper=G> g; array[N] int h; }
parameters { real m; real<lower=0> t; vector[G] a; array[G] vector[K] b; matrix[G, 3] d; }
//// loops
model {
  m ~ normal(0, 1);
  for (j in 1:G) { a[j] ~ normal(m, t); b[j] ~ normal(0, 1); }
  to_vector(d) ~ normal(0, 1);
  for (n in 1:N)
    z[n] ~ bernoulli_logit(a[g[n]] + dot_product(X[n], b[g[n]]) + d[g[n], h[n]]);
}
//// vectors
model {
  vector[N] eta = a[g];
  matrix[G, K] B;
  matrix[N, K] C;
  array[N] int at;
  m ~ normal(0, 1);
  a ~ normal(m, t);
  for (j in 1:G) { b[j] ~ normal(0, 1); B[j] = b[j]'; }
  to_vector(d) ~ normal(0, 1);
  C = B[g];
  for (n in 1:N) at[n] = (h[n] - 1) * G + g[n];
  z ~ bernoulli_logit(eta + rows_dot_product(X, C) + to_vector(d)[at]);
}
