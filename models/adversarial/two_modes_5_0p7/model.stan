// Two unit normals 5 apart.
parameters {
  real x;
}
model {
  target += log_sum_exp([-0.35667494393873245 + normal_lpdf(x | 0, 1), -1.2039728043259361 + normal_lpdf(x | 5, 1)]);
}
