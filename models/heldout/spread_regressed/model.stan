// A regression of the mean and of the logarithm of the spread.
data {
  vector[90] z;
  vector[90] y;
}
parameters {
  real a;
  real b;
  real c;
  real d;
}
model {
  [a, b, c, d] ~ normal(0, 3);
  y ~ normal(a + b * z, exp(c + d * z));
}
