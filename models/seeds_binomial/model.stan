// Germination of seeds in 21 plates, random-effects logistic regression.
data {
  int<lower=0> I;
  array[I] int<lower=0> n;
  array[I] int<lower=0> N;
  vector[I] x1;
  vector[I] x2;
}
transformed data {
  matrix[I, 4] X = append_col(append_col(rep_vector(1, I), x1), append_col(x2, x1 .* x2));
}
parameters {
  vector[4] beta;
  real<lower=0> precision;
  vector[I] plate;
}
model {
  real spread = inv_sqrt(precision);
  beta ~ normal(0, 1000);
  precision ~ gamma(0.001, 0.001);
  plate ~ normal(0, spread);
  n ~ binomial_logit(N, X * beta + plate);
}
generated quantities {
  real sigma = inv_sqrt(precision);
}
