// A drug that moves between blood and tissue, by the exponential of a matrix, with lognormal errors.
data {
  vector[10] t;
  vector[10] y;
}
parameters {
  real<lower=0> out;
  real<lower=0> to;
  real<lower=0> back;
  real<lower=0> volume;
  real<lower=0> s;
}
model {
  matrix[2, 2] rates = [[-out - to, back], [to, -back]];
  vector[10] amount;
  for (i in 1 : 10) amount[i] = matrix_exp(t[i] * rates)[1, 1] * 100;
  [out, to, back] ~ lognormal(-0.7, 0.8);
  volume ~ lognormal(2, 0.7);
  s ~ normal(0, 0.5);
  y ~ lognormal(log(amount / volume), s);
}
