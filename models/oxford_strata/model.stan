// Childhood cancer and X-rays of the mother: effects of 120 strata and
// a trend over birth years (Breslow and Clayton 1993).
data {
  int<lower=0> K;
  array[K] int<lower=0> n0;
  array[K] int<lower=0> n1;
  array[K] int<lower=0> r0;
  array[K] int<lower=0> r1;
  vector[K] year;
}
transformed data {
  vector[K] yearsq = year .* year;
}
parameters {
  vector[K] mu;
  real alpha;
  real beta1;
  real beta2;
  real<lower=0> sigma;
  vector[K] b;
}
model {
  r0 ~ binomial_logit(n0, mu);
  r1 ~ binomial_logit(n1, alpha + mu + beta1 * year + beta2 * (yearsq - 22.0) + sigma * b);
  b ~ std_normal();
  mu ~ normal(0, 5);
  alpha ~ normal(0, 5);
  beta1 ~ normal(0, 1);
  beta2 ~ normal(0, 1);
  sigma ~ inv_gamma(2, 1);
}
