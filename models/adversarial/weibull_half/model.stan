// A Weibull with a pole at zero.
parameters {
  real<lower=0> x;
}
model {
  x ~ weibull(0.5, 1);
}
