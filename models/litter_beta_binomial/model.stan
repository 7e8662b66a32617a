// Survival of rats in litters of two groups: beta-distributed litter rates.
data {
  int<lower=0> G;
  int<lower=0> N;
  array[G, N] int<lower=0> r;
  array[G, N] int<lower=0> n;
}
parameters {
  vector<lower=0, upper=1>[G] mu;
  vector<lower=0.1>[G] a_plus_b;
  array[G] vector<lower=0, upper=1>[N] p;
}
transformed parameters {
  vector[G] a = mu .* a_plus_b;
  vector[G] b = (1 - mu) .* a_plus_b;
}
model {
  a_plus_b ~ gamma(2, 0.1);
  for (g in 1 : G) {
    p[g] ~ beta(a[g], b[g]);
    for (i in 1 : N) {
      r[g, i] ~ binomial(n[g, i], p[g, i]);
    }
  }
}
