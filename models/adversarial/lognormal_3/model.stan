// A lognormal whose mean, 90, and sd, 8100, depend on one draw in thousands.
parameters {
  real<lower=0> x;
}
model {
  x ~ lognormal(0, 3);
}
