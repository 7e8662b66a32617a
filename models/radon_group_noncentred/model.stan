// Log radon in Minnesota homes: county intercepts explained by soil uranium,
// standardised county effects.
data {
  int<lower=1> N;
  int<lower=1> J;
  array[N] int<lower=1, upper=J> county;
  vector[N] u;  // log uranium of the home's county
  vector[N] x;  // 1 if measured on the first floor
  vector[N] y;  // log radon
}
parameters {
  real mu_alpha;
  real beta;
  real gamma;
  real<lower=0> sigma_alpha;
  real<lower=0> sigma_y;
  vector[J] alpha_raw;
}
transformed parameters {
  vector[J] alpha = mu_alpha + sigma_alpha * alpha_raw;
}
model {
  mu_alpha ~ normal(0, 10);
  beta ~ normal(0, 10);
  gamma ~ normal(0, 10);
  sigma_alpha ~ normal(0, 1);
  sigma_y ~ normal(0, 1);
  alpha_raw ~ normal(0, 1);
  {
    vector[N] mu;
    for (n in 1 : N) {
      mu[n] = alpha[county[n]] + beta * x[n] + gamma * u[n];
    }
    y ~ normal(mu, sigma_y);
  }
}
