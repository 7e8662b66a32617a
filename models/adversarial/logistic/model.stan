// A logistic distribution.
parameters {
  real x;
}
model {
  x ~ logistic(0, 1);
}
