// Log radon on floor with county intercepts, centred, vectorised by index.
data {
  int<lower=1> N;
  int<lower=1> J;
  array[N] int<lower=1, upper=J> county;
  vector[N] x;
  vector[N] y;
}
parameters {
  vector[J] level;
  real floor_effect;
  real state_level;
  real<lower=0, upper=10> sd_county;
  real<lower=0, upper=10> sd_home;
}
model {
  state_level ~ normal(0, 10);
  floor_effect ~ normal(0, 5);
  level ~ normal(state_level, sd_county);
  y ~ normal(level[county] + floor_effect * x, sd_home);
}
