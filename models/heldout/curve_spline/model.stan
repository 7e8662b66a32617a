// A smooth curve through ninety points by twenty splines whose coefficients walk, with Student t errors.
data {
  matrix[90, 20] basis;
  vector[90] y;
}
parameters {
  real first;
  vector[19] step;
  real<lower=0> q;
  real<lower=0> s;
  real<lower=1> nu;
}
model {
  vector[20] b = first + append_row(0, cumulative_sum(q * step));
  first ~ normal(0, 2);
  step ~ normal(0, 1);
  q ~ normal(0, 1);
  s ~ normal(0, 1);
  nu ~ gamma(2, 0.1);
  y ~ student_t(nu, basis * b, s);
}
