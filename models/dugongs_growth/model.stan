// Length of sea cows by age: a saturating growth curve.
data {
  int<lower=0> N;
  array[N] real x;
  array[N] real Y;
}
parameters {
  real limit;
  real deficit;
  real<lower=.5, upper=1> rate;
  real<lower=0> precision;
}
model {
  limit ~ normal(0, 1000);
  deficit ~ normal(0, 1000);
  rate ~ uniform(.5, 1);
  precision ~ gamma(.0001, .0001);
  for (i in 1 : N)
    Y[i] ~ normal(limit - deficit * rate ^ x[i], inv_sqrt(precision));
}
generated quantities {
  real sigma = inv_sqrt(precision);
  array[N] real Y_rep;
  for (i in 1 : N)
    Y_rep[i] = normal_rng(limit - deficit * pow(rate, x[i]), sigma);
}
