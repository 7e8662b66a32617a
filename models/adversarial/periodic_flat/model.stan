// A periodic density without a prior.
parameters {
  real x;
}
model {
  target += 4 * cos(6 * x);
}
