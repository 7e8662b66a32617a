// Logistic regression of 120 patients on fifty genes with scales of their own, Student t.
data {
  matrix[120, 50] x;
  array[120] int y;
}
parameters {
  real a;
  vector[50] raw;
  vector<lower=0>[50] local;
  real<lower=0> tau;
}
model {
  a ~ normal(0, 2);
  raw ~ normal(0, 1);
  local ~ student_t(5, 0, 1);
  tau ~ normal(0, 0.3);
  y ~ bernoulli_logit(a + x * (tau * local .* raw));
}
