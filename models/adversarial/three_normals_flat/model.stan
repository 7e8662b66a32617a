// Location and scale of three observations under flat priors: neither has a mean.
transformed data {
  vector[3] y = [1.3, -0.4, 2.2]';
}
parameters {
  real mu;
  real<lower=0> sigma;
}
model {
  y ~ normal(mu, sigma);
}
