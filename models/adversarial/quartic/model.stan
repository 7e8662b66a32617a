// A flat top and light tails.
parameters {
  real x;
}
model {
  target += -pow(x, 4);
}
