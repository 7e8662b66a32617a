// A narrow normal two sds out in a wide one.
parameters {
  real x;
}
model {
  target += log_sum_exp([-0.6931471805599453 + normal_lpdf(x | 0, 3), -0.6931471805599453 + normal_lpdf(x | 6, 0.1)]);
}
