// Log biomass of mesquite bushes on logs of volume, area and shape of the canopy,
// height and density.
data {
  int<lower=0> N;
  vector<lower=0>[N] weight;
  vector<lower=0>[N] diam1;
  vector<lower=0>[N] diam2;
  vector<lower=0>[N] canopy_height;
  vector<lower=0>[N] total_height;
  vector<lower=0>[N] density;
  vector<lower=0, upper=1>[N] group;
}
transformed data {
  vector[N] log_weight = log(weight);
  vector[N] log_volume = log(diam1 .* diam2 .* canopy_height);
  vector[N] log_area = log(diam1 .* diam2);
  vector[N] log_shape = log(diam1 ./ diam2);
  vector[N] log_height = log(total_height);
  vector[N] log_density = log(density);
}
parameters {
  vector[7] beta;
  real<lower=0> sigma;
}
model {
  log_weight ~ normal(beta[1] + beta[2] * log_volume + beta[3] * log_area
                      + beta[4] * log_shape + beta[5] * log_height
                      + beta[6] * log_density + beta[7] * group, sigma);
}
