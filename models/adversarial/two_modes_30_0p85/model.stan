// Two unit normals 30 apart, the far one with .15 of the mass.
parameters {
  real x;
}
model {
  target += log_sum_exp([-0.16251892949777494 + normal_lpdf(x | 0, 1), -1.8971199848858813 + normal_lpdf(x | 30, 1)]);
}
