// Biomass of mesquite bushes from their logged measurements.
data {
  int<lower=0> N;
  vector<lower=0>[N] weight;
  vector<lower=0>[N] diam1;
  vector<lower=0>[N] diam2;
  vector<lower=0>[N] canopy_height;
  vector<lower=0>[N] total_height;
  vector<lower=0>[N] density;
  vector[N] group;
}
transformed data {
  int K = 7;
  matrix[N, K] X;
  X[, 1] = rep_vector(1, N);
  X[, 2] = log(diam1);
  X[, 3] = log(diam2);
  X[, 4] = log(canopy_height);
  X[, 5] = log(total_height);
  X[, 6] = log(density);
  X[, 7] = group;
}
parameters {
  vector[K] beta;
  real<lower=0> sigma;
}
model {
  sigma ~ normal(0, 10);
  log(weight) ~ normal(X * beta, sigma);
}
