// Costs of patients: many have none, the others' are lognormal, both depend on age.
data {
  vector[150] age;
  array[150] int some;
  vector[150] cost;
}
parameters {
  vector[2] share;
  vector[2] size;
  real<lower=0> s;
}
model {
  share ~ normal(0, 1.5);
  size ~ normal(0, 3);
  s ~ exponential(1);
  some ~ bernoulli_logit(share[1] + share[2] * age);
  for (i in 1 : 150) {
    if (some[i] == 1) cost[i] ~ lognormal(size[1] + size[2] * age[i], s);
  }
}
