// No success in twenty trials under a normal(0, 10) prior on the logit.
parameters {
  real a;
}
model {
  a ~ normal(0, 10);
  rep_array(0, 20) ~ bernoulli_logit(a);
}
