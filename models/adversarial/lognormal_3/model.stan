// A lognormal whose mean, 90, and sd, 8100, hang on one draw of thousands.
parameters {
  real<lower=0> x;
}
model {
  x ~ lognormal(0, 3);
}
