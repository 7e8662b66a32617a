data { int N; int G; vector[N] x; vector[N] y; array[N] int g; }
parameters { real a; vector[G] u; real<lower=0> s; }
//// loops
model {
  real total = 0.5;
  real last = 0;
  vector[G] t = u;
  array[2] real pair = {0.0, a};
  for (n in 1:N) {
    real here = x[n] * a;
    total += here;
    total -= square(u[g[n]]);
    last = here + a;
    t[g[n]] += here * 2;
    if (x[n] > 0) total += y[n] * a;
    pair[2] += here;
  }
  target += total + last + pair[2] * pair[1];
  y ~ normal(t[g], s);
}
