// Germination of seeds in 21 plates: plate effects as deviations from their
// regression, centred.
data {
  int<lower=0> I;
  array[I] int<lower=0> n;
  array[I] int<lower=0> N;
  vector[I] x1;  // seed type
  vector[I] x2;  // root extract
}
parameters {
  real alpha0;
  real alpha1;
  real alpha2;
  real alpha12;
  vector[I] b;
  real<lower=0> sigma;
}
model {
  alpha0 ~ normal(0, 5);
  alpha1 ~ normal(0, 5);
  alpha2 ~ normal(0, 5);
  alpha12 ~ normal(0, 5);
  sigma ~ normal(0, 1);
  b ~ normal(alpha0 + alpha1 * x1 + alpha2 * x2 + alpha12 * x1 .* x2, sigma);
  n ~ binomial_logit(N, b);
}
