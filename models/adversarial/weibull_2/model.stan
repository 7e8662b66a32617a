// A Weibull with shape 2.
parameters {
  real<lower=0> x;
}
model {
  x ~ weibull(2, 1);
}
