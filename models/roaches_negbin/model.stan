// Roaches caught in flats after pest management, with exposure as offset.
data {
  int<lower=1> N;
  array[N] int<lower=0> y;
  vector<lower=0>[N] roach1;
  vector[N] treatment;
  vector[N] senior;
  vector<lower=0>[N] exposure2;
}
transformed data {
  vector[N] log_expo = log(exposure2);
  vector[N] sqrt_roach = sqrt(roach1);
}
parameters {
  real alpha;
  real b_roach;
  real b_treatment;
  real b_senior;
  real<lower=0> reciprocal_phi;
}
transformed parameters {
  real phi = inv(reciprocal_phi);
}
model {
  alpha ~ normal(0, 5);
  b_roach ~ normal(0, 2.5);
  b_treatment ~ normal(0, 2.5);
  b_senior ~ normal(0, 2.5);
  reciprocal_phi ~ exponential(1);
  y ~ neg_binomial_2_log(alpha + log_expo + b_roach * sqrt_roach
                         + b_treatment * treatment + b_senior * senior, phi);
}
generated quantities {
  array[N] int y_rep;
  for (n in 1 : N) {
    real eta = alpha + log_expo[n] + b_roach * sqrt_roach[n] + b_treatment * treatment[n]
               + b_senior * senior[n];
    y_rep[n] = eta > 15 ? -1 : neg_binomial_2_log_rng(eta, phi);
  }
}
