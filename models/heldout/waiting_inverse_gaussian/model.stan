// Regression of the logarithm of the mean of waiting times, which are inverse Gaussian.
functions {
  real waiting_lpdf(vector y, vector mu, real shape) {
    return 0.5 * rows(y) * log(shape / (2 * pi())) - 1.5 * sum(log(y)) - 0.5 * shape * sum(square((y - mu) ./ mu) ./ y);
  }
}
data {
  vector[90] z;
  vector[90] y;
}
parameters {
  real a;
  real b;
  real<lower=0> shape;
}
model {
  a ~ normal(0, 2);
  b ~ normal(0, 1);
  shape ~ gamma(2, 0.5);
  y ~ waiting(exp(a + b * z), shape);
}
