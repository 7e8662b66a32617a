// A scale whose prior is 1 / sigma and which nothing else knows.
parameters {
  real mu;
  real<lower=0> sigma;
}
model {
  mu ~ normal(0, 1);
  target += -log(sigma);
}
