// A logistic regression whose classes a plane separates, no prior.
transformed data {
  vector[6] x = [-3, -2, -1, 1, 2, 3]';
  array[6] int y = {0, 0, 0, 1, 1, 1};
}
parameters {
  real a;
  real b;
}
model {
  y ~ bernoulli_logit(a + b * x);
}
