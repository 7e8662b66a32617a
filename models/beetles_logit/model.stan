// Mortality of beetles by dose of carbon disulphide, logit link.
data {
  int<lower=0> N;
  array[N] int<lower=0> n;
  array[N] int<lower=0> r;
  vector[N] x;
}
transformed data {
  vector[N] centered_x = x - mean(x);
}
parameters {
  real alpha_star;
  real beta;
}
model {
  alpha_star ~ normal(0.0, 1.0E4);
  beta ~ normal(0.0, 1.0E4);
  r ~ binomial_logit(n, alpha_star + beta * centered_x);
}
generated quantities {
  real alpha = alpha_star - beta * mean(x);
  array[N] real rhat;
  for (i in 1 : N) {
    rhat[i] = n[i] * inv_logit(alpha_star + beta * centered_x[i]);
  }
}
