// Logistic regression of 120 rows.
data {
  matrix[120, 3] x;
  array[120] int y;
}
parameters {
  real a;
  vector[3] b;
}
model {
  a ~ normal(0, 3);
  b ~ normal(0, 2);
  y ~ bernoulli_logit(a + x * b);
}
