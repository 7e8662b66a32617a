// Counts that rise with x: Poisson regression.
data {
  int<lower=0> N;
  vector[N] x;
  array[N] int<lower=0> y;
}
parameters {
  real alpha;
  real beta;
}
model {
  alpha ~ normal(0, 2);
  beta ~ normal(0, 2);
  y ~ poisson_log(alpha + beta * x);
}
generated quantities {
  array[N] int y_rep = poisson_log_rng(alpha + beta * x);
}
