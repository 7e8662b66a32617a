data { int N; vector[N] x; vector[N] y; array[N] int o; }
parameters { real a; real b; real<lower=0> s; }
//// loops
transformed parameters {
  vector[N] mu;
  array[N] real nu;
  for (n in 1:N) {
    mu[n] = a + b * x[n];
    nu[o[n]] = mu[n] * a;
  }
}
model {
  for (n in 1:N) y[n] ~ normal(mu[n], s);
  y ~ normal(nu, s);
}
//// vectors
transformed parameters {
  vector[N] mu = a + b * x;
  vector[N] nu;
  nu[o] = mu * a;
}
model {
  y ~ normal(mu, s);
  y ~ normal(nu, s);
}
