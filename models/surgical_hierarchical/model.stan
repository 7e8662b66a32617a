// Deaths after heart surgery on infants in twelve hospitals.
data {
  int<lower=0> N;
  array[N] int<lower=0> r;
  array[N] int<lower=1> n;
}
parameters {
  real mu;
  real<lower=0> sigma;
  vector<offset=mu, multiplier=sigma>[N] b;
}
model {
  mu ~ normal(-2, 1.5);
  sigma ~ normal(0, 1);
  b ~ normal(mu, sigma);
  r ~ binomial_logit(n, b);
}
generated quantities {
  vector[N] p = inv_logit(b);
  real pop_mean = inv_logit(mu);
  array[N] int ranks;
  for (i in 1 : N) {
    ranks[i] = 1;
    for (j in 1 : N) {
      ranks[i] += p[j] < p[i];
    }
  }
}
