// A uniform on a thousandth.
parameters {
  real<lower=0, upper=1e-3> x;
}
model {
  x ~ uniform(0, 1e-3);
}
