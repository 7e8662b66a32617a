// Mortality of beetles by dose, complementary log-log link.
functions {
  real inv_cloglog_stable(real eta) {
    return -expm1(-exp(eta));
  }
}
data {
  int<lower=0> N;
  array[N] int<lower=0> n;
  array[N] int<lower=0> r;
  vector[N] x;
}
transformed data {
  vector[N] z = (x - mean(x)) / sd(x);
}
parameters {
  real alpha;
  real beta;
}
model {
  vector[N] p;
  for (i in 1 : N) {
    p[i] = inv_cloglog_stable(alpha + beta * z[i]);
  }
  alpha ~ normal(0, 2);
  beta ~ normal(0, 2);
  r ~ binomial(n, p);
}
