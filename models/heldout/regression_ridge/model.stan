// Regression of 60 rows on four correlated columns, with a common scale of the slopes.
data {
  matrix[60, 4] x;
  vector[60] y;
}
parameters {
  real a;
  vector[4] b;
  real<lower=0> s;
  real<lower=0> t;
}
model {
  t ~ normal(0, 1);
  b ~ normal(0, t);
  a ~ normal(0, 5);
  s ~ exponential(1);
  y ~ normal(a + x * b, s);
}
