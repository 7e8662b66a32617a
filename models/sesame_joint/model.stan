// Sesame Street: viewing and letter score of children jointly by site, an
// encouragement design with bivariate errors.
data {
  int<lower=0> N;
  int<lower=0> J;
  array[N] int<lower=1, upper=J> siteset;
  array[N] vector[2] yt;
  vector[N] z;
}
parameters {
  array[J] vector[2] ag;
  real b;
  real d;
  vector[2] mu_ag;
  vector<lower=0>[2] sigma_ag;
  real<lower=-1, upper=1> rho_ag;
  vector<lower=0>[2] sigma_y;
  real<lower=-1, upper=1> rho_yt;
}
model {
  matrix[2, 2] Sigma_ag;
  matrix[2, 2] Sigma_yt;
  array[N] vector[2] yt_hat;

  for (k in 1 : 2) {
    Sigma_ag[k, k] = square(sigma_ag[k]);
    Sigma_yt[k, k] = square(sigma_y[k]);
  }
  Sigma_ag[1, 2] = rho_ag * sigma_ag[1] * sigma_ag[2];
  Sigma_ag[2, 1] = Sigma_ag[1, 2];
  Sigma_yt[1, 2] = rho_yt * sigma_y[1] * sigma_y[2];
  Sigma_yt[2, 1] = Sigma_yt[1, 2];

  for (i in 1 : N) {
    yt_hat[i, 2] = ag[siteset[i], 2] + d * z[i];
    yt_hat[i, 1] = ag[siteset[i], 1] + b * z[i];
  }
  mu_ag[1] ~ normal(25, 20);
  mu_ag[2] ~ normal(0.5, 1);
  sigma_ag ~ normal(0, 20);
  sigma_y ~ cauchy(0, 10);
  b ~ normal(0, 10);
  d ~ normal(0, 1);
  ag ~ multi_normal(mu_ag, Sigma_ag);
  yt ~ multi_normal(yt_hat, Sigma_yt);
}
