// No success in twenty trials under a flat prior on the logit.
transformed data {
  array[20] int y = rep_array(0, 20);
}
parameters {
  real a;
}
model {
  y ~ bernoulli_logit(a);
}
