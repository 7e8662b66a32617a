// A Weibull with shape 10.
parameters {
  real<lower=0> x;
}
model {
  x ~ weibull(10, 1);
}
