// Mean and scale of one observation: the density is unbounded.
parameters {
  real mu;
  real<lower=0> sigma;
}
model {
  1.5 ~ normal(mu, sigma);
}
