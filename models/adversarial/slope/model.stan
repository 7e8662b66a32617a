// A density that grows for ever.
parameters {
  real x;
}
model {
  target += x;
}
