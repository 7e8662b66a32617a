// Vocabulary scores of children born before 1987 on the mother's schooling and
// armed forces test, Student t errors.
data {
  int<lower=0> N;
  vector[N] ppvt;
  vector[N] hs;
  vector[N] afqt;
}
parameters {
  real intercept;
  real b_hs;
  real b_afqt;
  real<lower=0> scale;
  real<lower=1> nu;
}
model {
  intercept ~ normal(0, 100);
  b_hs ~ normal(0, 20);
  b_afqt ~ normal(0, 5);
  scale ~ exponential(0.05);
  nu ~ gamma(2, 0.1);
  ppvt ~ student_t(nu, intercept + b_hs * hs + b_afqt * (afqt - 100), scale);
}
