// Yield of six batches of dyestuff: between- and within-batch variation.
data {
  int BATCHES;
  int SAMPLES;
  array[BATCHES, SAMPLES] real y;
}
parameters {
  real grand_mean;
  array[BATCHES] real batch_mean;
  array[2] real<lower=0> precision;  // between batches, within batches
}
transformed parameters {
  array[2] real s = inv_sqrt(precision);
}
model {
  precision ~ gamma(0.001, 0.001);
  grand_mean ~ normal(0, 1e5);
  batch_mean ~ normal(grand_mean, s[1]);
  for (b in 1 : BATCHES) {
    y[b] ~ normal(batch_mean[b], s[2]);
  }
}
generated quantities {
  real share_between = square(s[1]) / (square(s[1]) + square(s[2]));
}
