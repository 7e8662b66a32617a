// Log radon on floor with an intercept of its own for every county.
data {
  int<lower=0> N;
  int<lower=1> J;
  array[N] int<lower=1, upper=J> county;
  vector[N] x;
  vector[N] y;
}
parameters {
  vector[J] a;
  real beta;
  real<lower=0> sigma;
}
model {
  a ~ normal(0, 10);
  beta ~ normal(0, 10);
  sigma ~ cauchy(0, 2.5);
  y ~ normal(a[county] + beta * x, sigma);
}
