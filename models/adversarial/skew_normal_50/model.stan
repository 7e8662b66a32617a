// A skew normal with shape 50.
parameters {
  real x;
}
model {
  x ~ skew_normal(0, 1, 50);
}
