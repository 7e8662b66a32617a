// Two wells with a low barrier.
parameters {
  real x;
}
model {
  target += -square(square(x) - 1);
}
