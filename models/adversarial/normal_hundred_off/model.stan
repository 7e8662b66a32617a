// A unit normal a hundred sds from the start.
parameters {
  real x;
}
model {
  x ~ normal(100, 1);
}
