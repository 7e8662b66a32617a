data { int N; vector[N] x; vector[N] y; vector[N] p; array[N] int z; }
parameters { real a; real<lower=0> s; }
//// loops
model {
  for (n in 1:N) {
    real m = a;
    if (z[n] == 1) m += x[n]; else m -= 0.5;
    if (n > 5 && y[n] > 0.3) {
      target += normal_lccdf(y[n] | m, s);
    } else if (y[n] < -0.3) {
      target += normal_lpdf(p[n] | m, s);
      target += log(p[n]) * a;
    } else
      y[n] ~ normal(z[n] ? m : a, s);
    if (a > 0.1) target += -square(m - x[n]);
  }
}
