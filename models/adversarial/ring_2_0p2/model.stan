// A ring of radius 2 and width 0.2.
parameters {
  vector[2] x;
}
model {
  target += normal_lpdf(sqrt(dot_self(x) + 1e-12) | 2, 0.2);
}
