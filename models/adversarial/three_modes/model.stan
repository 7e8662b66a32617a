// Three modes of equal mass.
parameters {
  real x;
}
model {
  vector[3] l = [normal_lpdf(x | -8, 1), normal_lpdf(x | 0, 1), normal_lpdf(x | 8, 1)]';
  target += log_sum_exp(l);
}
