// A banana: y follows 5 x squared.
parameters {
  real x;
  real y;
}
model {
  x ~ normal(0, 1);
  y ~ normal(5 * square(x), 0.5);
}
