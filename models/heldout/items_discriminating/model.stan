// Forty-five people answer eight items that differ in difficulty and discrimination.
data {
  array[45, 8] int y;
}
parameters {
  vector[45] ability;
  vector<lower=0>[8] slope;
  vector[8] hard;
  real<lower=0> spread;
}
model {
  ability ~ normal(0, 1);
  slope ~ lognormal(0, 0.5);
  hard ~ normal(0, spread);
  spread ~ gamma(2, 1);
  for (j in 1 : 8) y[ : , j] ~ bernoulli_logit(slope[j] * (ability - hard[j]));
}
