// Log earnings on log height and sex.
data {
  int<lower=0> N;
  vector<lower=0>[N] earn;
  vector<lower=0>[N] height;
  vector<lower=0, upper=1>[N] male;
}
transformed data {
  vector[N] log_earn = log(earn);
  vector[N] log_height = log(height);
}
parameters {
  vector[3] beta;
  real<lower=0> sigma;
}
model {
  log_earn ~ normal(beta[1] + beta[2] * log_height + beta[3] * male, sigma);
}
