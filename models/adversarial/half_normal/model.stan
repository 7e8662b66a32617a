// A half-normal: the mode is the edge.
parameters {
  real<lower=0> x;
}
model {
  x ~ normal(0, 1);
}
