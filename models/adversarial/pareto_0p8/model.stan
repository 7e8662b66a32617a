// A Pareto distribution without a mean.
parameters {
  real<lower=1> x;
}
model {
  x ~ pareto(1, 0.8);
}
