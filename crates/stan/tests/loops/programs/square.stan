data { int N; vector[N] x; vector[N] y; }
parameters { real a; real<lower=0> s; }
//// loops
model {
  for (i in 1:N)
    for (j in 1:N)
      if (i != j) target += -square(a * x[i] - y[j]) / s;
}
