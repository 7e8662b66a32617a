// A wave on a bell: many modes at the integers.
parameters {
  real x;
}
model {
  target += 1.5 * cos(2 * pi() * x) - square(x) / 18;
}
