// Whether people earn anything, on height and sex: logistic regression.
data {
  int<lower=0> N;
  array[N] int<lower=0, upper=1> earn_pos;
  vector[N] height;
  vector[N] male;
}
transformed data {
  matrix[N, 2] x = append_col((height - mean(height)) / 10, male);
}
parameters {
  real alpha;
  vector[2] beta;
}
model {
  alpha ~ student_t(4, 0, 5);
  beta ~ student_t(4, 0, 2.5);
  earn_pos ~ bernoulli_logit_glm(x, alpha, beta);
}
