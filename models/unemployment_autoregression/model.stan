// Annual US unemployment on its value a year before.
data {
  int<lower=0> N;
  vector[N] y;
  vector[N] y_lag;
}
parameters {
  vector[2] beta;
  real<lower=0> sigma;
}
model {
  y ~ normal(beta[1] + beta[2] * y_lag, sigma);
}
generated quantities {
  vector[N] y_rep;
  {
    real now = y_lag[1];
    for (n in 1 : N) {
      now = normal_rng(beta[1] + beta[2] * now, sigma);
      y_rep[n] = now;
    }
  }
}
