// A Cauchy distribution: no mean.
parameters {
  real x;
}
model {
  x ~ cauchy(0, 1);
}
