// A normal truncated three sds out.
parameters {
  real<lower=3> x;
}
model {
  x ~ normal(0, 1);
}
