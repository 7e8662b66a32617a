// A share of 0.01 of the mass 30 times as wide in one of twenty coordinates.
parameters {
  vector[20] x;
}
model {
  x[2 : 20] ~ normal(0, 1);
  target += log_mix(0.01, normal_lpdf(x[1] | 0, 30), normal_lpdf(x[1] | 0, 1));
}
