// Two unit normals 100 apart, the left one with 0.9 of the mass.
parameters {
  real x;
}
model {
  target += log_mix(0.9, normal_lpdf(x | -50.0, 1), normal_lpdf(x | 50.0, 1));
}
