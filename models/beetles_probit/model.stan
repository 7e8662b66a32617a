// Mortality of beetles by dose, probit link.
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
transformed parameters {
  array[N] real<lower=0, upper=1> p;
  for (i in 1 : N) {
    p[i] = Phi(alpha + beta * z[i]);
  }
}
model {
  alpha ~ normal(0, 2);
  beta ~ normal(0, 2);
  for (i in 1 : N) {
    r[i] ~ binomial(n[i], p[i]);
  }
}
