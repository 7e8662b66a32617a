// Two unit normals 20 apart, the left one with 0.7 of the mass.
parameters {
  real x;
}
model {
  target += log_mix(0.7, normal_lpdf(x | -10.0, 1), normal_lpdf(x | 10.0, 1));
}
