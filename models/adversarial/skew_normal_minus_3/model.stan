// A skew normal with shape -3.
parameters {
  real x;
}
model {
  x ~ skew_normal(0, 1, -3);
}
