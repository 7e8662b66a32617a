// Weight on height where the scale stops at C pounds: the censored weights are
// parameters above the bound.
data {
  int<lower=0> N_obs;
  int<lower=0> N_cens;
  real C;
  vector[N_obs] weight;
  vector[N_obs] height;
  vector[N_cens] height_cens;
}
transformed data {
  real mean_height = mean(append_row(height, height_cens));
  vector[N_obs] x = height - mean_height;
  vector[N_cens] x_cens = height_cens - mean_height;
}
parameters {
  real a;
  real b;
  real<lower=0> sigma;
  vector<lower=C>[N_cens] weight_cens;
}
model {
  a ~ normal(150, 50);
  b ~ normal(0, 10);
  sigma ~ normal(0, 50);
  weight ~ normal(a + b * x, sigma);
  weight_cens ~ normal(a + b * x_cens, sigma);
}
