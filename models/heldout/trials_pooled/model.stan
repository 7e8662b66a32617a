// Twenty-four trials pooled, whose true effects have heavy tails.
data {
  vector[24] error;
  vector[24] y;
}
parameters {
  real mu;
  real<lower=0> tau;
  real<lower=2> nu;
  vector[24] effect;
}
model {
  mu ~ normal(0, 1);
  tau ~ normal(0, 0.5);
  nu ~ gamma(2, 0.1);
  effect ~ student_t(nu, 0, 1);
  y ~ normal(mu + tau * effect, error);
}
