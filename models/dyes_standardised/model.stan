// Yield of six batches of dyestuff: batch means standardised, weakly informative
// scales.
data {
  int BATCHES;
  int SAMPLES;
  array[BATCHES] vector[SAMPLES] y;
}
parameters {
  real mu;
  vector[BATCHES] z;
  real<lower=0> sd_between;
  real<lower=0> sd_within;
}
model {
  mu ~ normal(1500, 100);
  z ~ std_normal();
  sd_between ~ student_t(4, 0, 50);
  sd_within ~ student_t(4, 0, 50);
  for (b in 1 : BATCHES) {
    y[b] ~ normal(mu + sd_between * z[b], sd_within);
  }
}
