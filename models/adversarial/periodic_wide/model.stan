// A periodic density under a wide normal: dozens of modes.
parameters {
  real x;
}
model {
  target += 4 * cos(6 * x) - square(x) / 200;
}
