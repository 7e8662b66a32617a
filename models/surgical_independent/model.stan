// Deaths after heart surgery on infants: every hospital by itself, uniform
// priors, so that the posterior is known.
data {
  int<lower=0> N;
  array[N] int<lower=0> r;
  array[N] int<lower=0> n;
}
parameters {
  vector<lower=0, upper=1>[N] p;
}
model {
  p ~ beta(1, 1);
  r ~ binomial(n, p);
}
