// A posterior that is none: the data say nothing of beta, and it has no prior. The fit is not to be trusted.
data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  real alpha;
  real beta;
}
model {
  y ~ normal(alpha, 1);
}
