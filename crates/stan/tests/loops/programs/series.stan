data { int N; vector[N] y; }
parameters { real a; real b; vector[N] e; real<lower=0> s; }
//// loops
model {
  for (n in 2:N) {
    y[n] ~ normal(a + b * y[n - 1], s);
    e[n] ~ normal(e[n - 1], s);
  }
}
//// vectors
model {
  y[2:N] ~ normal(a + b * y[1:(N - 1)], s);
  e[2:N] ~ normal(e[1:(N - 1)], s);
}
