// Regression of a hundred rows with skew-normal errors.
data {
  vector[100] z;
  vector[100] y;
}
parameters {
  real a;
  real b;
  real<lower=0> s;
  real alpha;
}
model {
  a ~ normal(0, 3);
  b ~ normal(0, 3);
  s ~ student_t(3, 0, 2.5);
  alpha ~ normal(0, 4);
  y ~ skew_normal(a + b * z, s, alpha);
}
