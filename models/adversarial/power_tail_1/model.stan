// A density that falls like 1 / |x|.
parameters {
  real x;
}
model {
  target += -0.5 * log1p(square(x));
}
