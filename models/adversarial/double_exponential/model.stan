// A kink at the mode.
parameters {
  real x;
}
model {
  x ~ double_exponential(0, 1);
}
