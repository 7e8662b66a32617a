// No success in twenty trials under a normal(0, 2) prior on the logit.
parameters {
  real a;
}
model {
  a ~ normal(0, 2);
  rep_array(0, 20) ~ bernoulli_logit(a);
}
