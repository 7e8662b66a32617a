// A ring of radius 3 and width 0.1.
parameters {
  vector[2] x;
}
model {
  target += normal_lpdf(sqrt(dot_self(x) + 1e-12) | 3, 0.1);
}
