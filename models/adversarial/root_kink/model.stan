// A cusp: exp(-sqrt(|x|)).
parameters {
  real x;
}
model {
  target += -sqrt(abs(x));
}
