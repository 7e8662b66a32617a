data { int N; int M; vector[N] x; vector[N] y; array[N] int c; array[M] int from; array[M] int to; array[M] int size; }
parameters { real a; vector[M] u; real<lower=0> s; vector[N] e; }
//// loops
model {
  int pos = 1;
  e ~ std_normal();
  for (m in 1:M) {
    y[from[m]:to[m]] ~ normal(u[m] + a * x[from[m]:to[m]] .* segment(e, from[m], size[m]), s);
    segment(c, pos, size[m]) ~ poisson_log(u[m] * exp(segment(x, from[m], size[m])));
    target += -square(sum(segment(e, pos, size[m])) - u[m]);
    target += dot_product(x[from[m]:to[m]], e[from[m]:to[m]]) * a;
    if (size[m] > 1) target += a * x[pos + 1];
    pos += size[m];
  }
  target += a * pos;
}
