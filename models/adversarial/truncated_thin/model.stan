// A normal truncated to a sliver.
parameters {
  real<lower=-0.1, upper=0.1> x;
}
model {
  x ~ normal(0, 1);
}
