// A probability with the density 1 / p.
parameters {
  real<lower=0, upper=1> p;
}
model {
  target += -log(p);
}
