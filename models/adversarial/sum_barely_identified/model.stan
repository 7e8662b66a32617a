// Two intercepts of which the data see the sum, under wide priors.
transformed data {
  vector[4] y = [1, 2, 1.5, 1.2]';
}
parameters {
  real a;
  real b;
}
model {
  [a, b] ~ normal(0, 100);
  y ~ normal(a + b, 1);
}
