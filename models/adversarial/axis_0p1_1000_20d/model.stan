// A share of 0.1 of the mass 1000 times as wide in one of twenty coordinates.
parameters {
  vector[20] x;
}
model {
  x[2 : 20] ~ normal(0, 1);
  target += log_mix(0.1, normal_lpdf(x[1] | 0, 1000), normal_lpdf(x[1] | 0, 1));
}
