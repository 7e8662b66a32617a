// Two intercepts of which the data see the sum alone.
transformed data {
  vector[4] y = [1, 2, 1.5, 1.2]';
}
parameters {
  real a;
  real b;
}
model {
  y ~ normal(a + b, 1);
}
