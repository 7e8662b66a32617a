// A ridge that follows a sine.
parameters {
  real x;
  real y;
}
model {
  x ~ normal(0, 1);
  y ~ normal(2 * sin(3 * x), 0.3);
}
