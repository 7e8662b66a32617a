// A narrow normal far from the origin.
parameters {
  real x;
}
model {
  x ~ normal(1e6, 1e-3);
}
