// A density that grows without bound on both sides.
parameters {
  real x;
}
model {
  target += 0.01 * square(x);
}
