data { int N; int G; vector[N] y; array[N] int g; }
parameters { real a; real b; vector[N] e; real<lower=0> s; }
//// carried
model {
  vector[N] h;
  vector[G] seen = rep_vector(0, G);
  real state = a;
  e ~ std_normal();
  h[1] = a;
  for (n in 2:N) h[n] = a + b * h[n - 1] + e[n];
  for (n in 1:N) {
    state = 0.5 * state + y[n];
    target += -square(state - b);
    y[n] ~ normal(h[n] + seen[g[n]], s);
    seen[g[n]] += 0.1 * b;
  }
}
