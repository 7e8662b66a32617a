data { int N; vector[N] x; vector[N] y; array[N] int z; array[N] int c; }
parameters { real a; real<lower=0> s; }
//// loops
model {
  vector[N] m = rep_vector(a, N);
  for (n in 1:N) {
    if (z[n] == 0) continue;
    m[n] += x[n];
    if (c[n] == 3) { target += a; continue; }
    y[n] ~ normal(m[n], s);
  }
  target += sum(m);
}
