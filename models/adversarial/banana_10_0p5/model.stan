// A banana: y follows 10 x squared within 0.5.
parameters {
  real x;
  real y;
}
model {
  x ~ normal(0, 1);
  y ~ normal(10 * square(x), 0.5);
}
