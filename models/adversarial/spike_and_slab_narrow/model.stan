// A broad and a narrow normal with the same mean.
parameters {
  real x;
}
model {
  target += log_mix(0.5, normal_lpdf(x | 0, 0.1), normal_lpdf(x | 0, 3));
}
