data { int N; int W; array[N] row_vector[W] Z; array[N] int c; }
transformed data { matrix[N, W] Q; for (n in 1:N) Q[n] = Z[n]; }
parameters { vector[W] b; }
//// loops
model {
  for (n in 1:N) c[n] ~ poisson_log(Z[n] * b);
}
//// vectors
model {
  c ~ poisson_log(Q * b);
}
