functions {
  real link(real e, int kind) {
    if (kind == 1) return inv_logit(e);
    else if (kind == 2) { real half = e / 2; return Phi(half); }
    return inv_cloglog(e);
  }
  real part_lpmf(int z, real e, int kind) {
    real p = link(e, kind);
    return z == 1 ? log(p) : log1m(p);
  }
  real mean_of(vector v, int i) { return v[i] + sum(v) / num_elements(v); }
}
data { int N; vector[N] x; array[N] int z; array[N] int h; }
parameters { real a; vector[3] v; }
//// loops
model {
  for (n in 1:N) {
    target += part_lpmf(z[n] | a * x[n], h[n]);
    target += -square(mean_of(v, h[n]));
    z[n] ~ part(a, h[n]);
  }
}
