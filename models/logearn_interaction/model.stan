// Log earnings on standardised height and sex with interaction.
data {
  int<lower=0> N;
  vector<lower=0>[N] earn;
  vector[N] height;
  vector<lower=0, upper=1>[N] male;
}
transformed data {
  vector[N] log_earn;
  vector[N] z_height;
  vector[N] inter;
  log_earn = log(earn);
  z_height = (height - mean(height)) / sd(height);
  inter = z_height .* male;
}
parameters {
  vector[4] beta;
  real<lower=0> sigma;
}
model {
  beta ~ student_t(3, 0, 10);
  sigma ~ exponential(0.5);
  target += normal_lpdf(log_earn | beta[1] + beta[2] * z_height + beta[3] * male
                                   + beta[4] * inter, sigma);
}
generated quantities {
  real sex_ratio = exp(beta[3]);
  real r_squared;
  {
    vector[N] mu = beta[1] + beta[2] * z_height + beta[3] * male + beta[4] * inter;
    r_squared = variance(mu) / (variance(mu) + square(sigma));
  }
}
