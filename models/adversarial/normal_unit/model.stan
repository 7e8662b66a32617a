// A standard normal.
parameters {
  real x;
}
model {
  x ~ normal(0, 1);
}
