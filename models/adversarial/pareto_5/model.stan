// A Pareto distribution: a hard edge and a heavy tail.
parameters {
  real<lower=1> x;
}
model {
  x ~ pareto(1, 5);
}
