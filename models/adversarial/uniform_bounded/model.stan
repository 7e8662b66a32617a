// A uniform on an interval away from zero.
parameters {
  real<lower=100, upper=101> x;
}
model {
  x ~ uniform(100, 101);
}
