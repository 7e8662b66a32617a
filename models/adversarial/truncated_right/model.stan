// A normal cut off two sds below its mean.
parameters {
  real<upper=3> x;
}
model {
  x ~ normal(5, 1);
}
