data { int N; int M; vector[N] x; vector[N] y; array[M] int from; array[M] int to; array[M] int size; }
parameters { real a; vector[M] u; real<lower=0> s; }
//// loops
model {
  vector[N] w;
  for (m in 1:M) {
    real total = u[m];
    for (i in from[m]:to[m]) {
      y[i] ~ normal(u[m] + a * x[i], s);
      total += x[i] * a;
      w[i] = u[m] * x[i];
    }
    for (j in 1:size[m]) target += a * x[from[m] + j - 1] * u[m];
    total ~ normal(0, 1);
  }
  w ~ normal(0, 1);
}
