// Regression with Student t errors of unknown degrees of freedom.
data {
  vector[70] z;
  vector[70] y;
}
parameters {
  real a;
  real b;
  real<lower=0> s;
  real<lower=1> nu;
}
model {
  a ~ normal(0, 5);
  b ~ normal(0, 5);
  s ~ normal(0, 2);
  nu ~ gamma(2, 0.1);
  y ~ student_t(nu, a + b * z, s);
}
