// A spike in a slab thirty times as wide, a fifth of the mass.
parameters {
  real x;
}
model {
  target += log_sum_exp([-1.6094379124341003 + normal_lpdf(x | 0, 0.1), -0.2231435513142097 + normal_lpdf(x | 0, 3)]);
}
