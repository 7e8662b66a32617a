// An exponential cut off at one, all at the left edge.
parameters {
  real<lower=0, upper=1> x;
}
model {
  x ~ exponential(20);
}
