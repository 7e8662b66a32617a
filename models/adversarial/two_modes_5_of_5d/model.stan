// Two unit normals 5 apart in the first of five coordinates.
parameters {
  vector[5] x;
}
model {
  x[2 : 5] ~ normal(0, 1);
  target += log_mix(0.5, normal_lpdf(x[1] | -2.5, 1), normal_lpdf(x[1] | 2.5, 1));
}
