// Log biomass of mesquite bushes on the log of their canopy's volume.
data {
  int<lower=0> N;
  vector<lower=0>[N] weight;
  vector<lower=0>[N] diam1;
  vector<lower=0>[N] diam2;
  vector<lower=0>[N] canopy_height;
}
transformed data {
  vector[N] log_volume = log(diam1 .* diam2 .* canopy_height);
}
parameters {
  vector[2] beta;
  real<lower=0> sigma;
}
model {
  log(weight) ~ normal(beta[1] + beta[2] * log_volume, sigma);
}
