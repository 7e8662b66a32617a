data { int N; vector[N] x; array[N] int c; }
parameters { real a; }
//// loops
model {
  for (v in x) target += -square(v - a);
  for (k in c) k ~ poisson_log(a);
}
//// vectors
model {
  target += -sum(square(x - a));
  c ~ poisson_log(a);
}
