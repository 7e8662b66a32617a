// A Rayleigh distribution.
parameters {
  real<lower=0> x;
}
model {
  x ~ rayleigh(1);
}
