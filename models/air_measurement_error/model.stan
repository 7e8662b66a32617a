// Respiratory illness and exposure to nitrogen dioxide measured with error: the
// true exposures of three groups are parameters (Whittemore and Keller 1988).
data {
  real alpha;
  real beta;
  real<lower=0> sigma2;
  int<lower=0> J;
  array[J] int<lower=0> y;
  array[J] int<lower=0> n;
  vector[J] Z;
}
parameters {
  real theta1;
  real theta2;
  vector[J] X;
}
model {
  theta1 ~ normal(0, 5);
  theta2 ~ normal(0, 0.5);
  X ~ normal(alpha + beta * Z, sqrt(sigma2));
  y ~ binomial_logit(n, theta1 + theta2 * X);
}
