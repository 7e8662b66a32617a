// A box with soft edges.
parameters {
  real x;
}
model {
  target += -pow(x, 10);
}
