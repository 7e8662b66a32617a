// A skew normal with shape 5.
parameters {
  real x;
}
model {
  x ~ skew_normal(0, 1, 5);
}
