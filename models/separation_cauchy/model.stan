// Outcomes that a predictor separates completely: logistic regression that only
// its Cauchy prior keeps finite.
data {
  int<lower=0> N;
  vector[N] x;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  real alpha;
  real beta;
}
model {
  alpha ~ cauchy(0, 10);
  beta ~ cauchy(0, 2.5);
  y ~ bernoulli_logit(alpha + beta * x);
}
