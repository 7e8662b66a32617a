// A banana: y follows 2 x squared within 0.5.
parameters {
  real x;
  real y;
}
model {
  x ~ normal(0, 1);
  y ~ normal(2 * square(x), 0.5);
}
