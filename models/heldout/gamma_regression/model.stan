// Regression of positive numbers.
data {
  vector[60] z;
  vector[60] y;
}
parameters {
  real a;
  real b;
  real<lower=0> shape;
}
model {
  a ~ normal(0, 2);
  b ~ normal(0, 2);
  shape ~ gamma(2, 0.5);
  y ~ gamma(shape, shape ./ exp(a + b * z));
}
