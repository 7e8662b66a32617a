// A hundredth of the mass thirty times as wide, in five dimensions.
parameters {
  vector[5] x;
}
model {
  target += log_sum_exp([-0.01005033585350145 + normal_lpdf(x | 0, 1), -4.605170185988091 + normal_lpdf(x | 0, 30)]);
}
