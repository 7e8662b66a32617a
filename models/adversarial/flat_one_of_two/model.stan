// One of two parameters has no prior and no data.
parameters {
  real x;
  real y;
}
model {
  x ~ normal(0, 1);
}
