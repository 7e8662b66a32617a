// Five narrow peaks side by side.
parameters {
  real x;
}
model {
  target += log_sum_exp([-1.6094379124341003 + normal_lpdf(x | -2, 0.15), -1.6094379124341003 + normal_lpdf(x | -1, 0.15), -1.6094379124341003 + normal_lpdf(x | 0, 0.15), -1.6094379124341003 + normal_lpdf(x | 1, 0.15), -1.6094379124341003 + normal_lpdf(x | 2, 0.15)]);
}
