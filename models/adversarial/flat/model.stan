// No density at all: a flat line.
parameters {
  real x;
}
model {
}
