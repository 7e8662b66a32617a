// A banana: y follows 0.1 x squared.
parameters {
  real x;
  real y;
}
model {
  x ~ normal(0, 1);
  y ~ normal(0.1 * square(x), 0.5);
}
