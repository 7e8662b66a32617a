// A banana in three dimensions.
parameters {
  real x;
  vector[2] y;
}
model {
  x ~ normal(0, 1);
  y[1] ~ normal(2 * square(x), 0.5);
  y[2] ~ normal(-3 * square(x), 0.3);
}
