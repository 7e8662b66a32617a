// A broad shoulder beside a peak.
parameters {
  real x;
}
model {
  target += log_sum_exp([-0.5108256237659907 + normal_lpdf(x | 0, 1), -0.916290731874155 + normal_lpdf(x | 2.5, 2)]);
}
