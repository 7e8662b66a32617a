data { int N; vector[N] x; array[N] int c; array[N] int z; vector[N] p; array[N] int h; }
parameters { real a; real b; real<lower=0> f; }
//// loops
model {
  for (n in 1:N) {
    c[n] ~ neg_binomial_2_log(a + b * x[n], f);
    c[n] ~ binomial_logit(6 + h[n] % 2 + c[n] %/% 2, a * x[n]);
    x[n] ~ student_t(4, a, p[n] + f);
    p[n] ~ lognormal(b, f);
    target += max({x[n], p[n]}) * a;
    x[n] ~ normal(a, f) T[-0.9, ];
  }
}
