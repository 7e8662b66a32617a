// Survival of rats in litters of two groups: litters differ by a normal effect on
// the logit.
data {
  int<lower=0> G;
  int<lower=0> N;
  array[G, N] int<lower=0> r;
  array[G, N] int<lower=0> n;
}
parameters {
  vector[G] mu;
  vector<lower=0>[G] sigma;
  array[G] vector[N] effect;
}
model {
  mu ~ normal(0, 3);
  sigma ~ normal(0, 2);
  for (g in 1 : G) {
    effect[g] ~ std_normal();
    r[g] ~ binomial_logit(n[g], mu[g] + sigma[g] * effect[g]);
  }
}
