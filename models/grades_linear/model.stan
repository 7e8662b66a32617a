// Final on midterm grade: a line with Student t errors.
data {
  int<lower=0> N;
  vector[N] midterm;
  vector[N] final;
}
parameters {
  vector[2] beta;
  real<lower=0> sigma;
}
model {
  sigma ~ cauchy(0, 10);
  final ~ student_t(5, beta[1] + beta[2] * midterm, sigma);
}
