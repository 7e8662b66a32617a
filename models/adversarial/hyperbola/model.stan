// A product of two positive numbers is seen: a hyperbola.
parameters {
  real<lower=0> a;
  real<lower=0> b;
}
model {
  a ~ lognormal(0, 1);
  b ~ lognormal(0, 1);
  1 ~ normal(log(a) + log(b), 0.1);
}
