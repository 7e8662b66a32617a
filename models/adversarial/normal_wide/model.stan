// A normal of scale 1e8.
parameters {
  real x;
}
model {
  x ~ normal(0, 1e8);
}
