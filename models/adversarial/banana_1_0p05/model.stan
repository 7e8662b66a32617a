// A banana: y follows 1 x squared within 0.05.
parameters {
  real x;
  real y;
}
model {
  x ~ normal(0, 1);
  y ~ normal(1 * square(x), 0.05);
}
