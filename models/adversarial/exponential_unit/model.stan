// An exponential distribution: the mass is at the edge.
parameters {
  real<lower=0> x;
}
model {
  x ~ exponential(1);
}
