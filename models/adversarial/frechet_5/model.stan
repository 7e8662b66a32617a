// A Frechet distribution.
parameters {
  real<lower=0> x;
}
model {
  x ~ frechet(5, 1);
}
