// Slopes 1 and 10 on the two sides of the mode.
parameters {
  real x;
}
model {
  target += x < 0 ? 10 * x : -x;
}
