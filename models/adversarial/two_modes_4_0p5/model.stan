// Two unit normals 4 apart, the left one with 0.5 of the mass.
parameters {
  real x;
}
model {
  target += log_mix(0.5, normal_lpdf(x | -2.0, 1), normal_lpdf(x | 2.0, 1));
}
