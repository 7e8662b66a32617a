// More coefficients than observations, no prior.
transformed data {
  matrix[2, 3] X = [[1, 0, 2], [0, 1, -1]];
  vector[2] y = [1, 2]';
}
parameters {
  vector[3] b;
}
model {
  y ~ normal(X * b, 1);
}
