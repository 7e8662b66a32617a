// A random walk of 100 steps with its scale unknown, no data: a funnel in the paths.
parameters {
  real<lower=0> s;
  vector[100] e;
}
model {
  s ~ lognormal(0, 0.5);
  e ~ normal(0, s);
}
