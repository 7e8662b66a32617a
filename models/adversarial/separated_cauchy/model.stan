// Outcomes that a predictor separates, under Cauchy priors: the slope has no mean.
transformed data {
  vector[8] x = [-2.1, -1.4, -0.9, -0.3, 0.2, 0.8, 1.5, 2.4]';
  array[8] int y = {0, 0, 0, 0, 1, 1, 1, 1};
}
parameters {
  real a;
  real b;
}
model {
  a ~ cauchy(0, 10);
  b ~ cauchy(0, 2.5);
  y ~ bernoulli_logit(a + b * x);
}
