// Two unit normals in 10 dimensions, 8 apart in each coordinate.
parameters {
  vector[10] x;
}
model {
  target += log_mix(0.5, normal_lpdf(x | -4, 1), normal_lpdf(x | 4, 1));
}
