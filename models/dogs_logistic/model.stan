// Dogs that learn to avoid a shock (Solomon and Wynne 1953): the chance of a
// shock falls with the avoidances and shocks so far.
data {
  int<lower=0> n_dogs;
  int<lower=0> n_trials;
  array[n_dogs, n_trials] int<lower=0, upper=1> y;  // 1 if shocked
}
parameters {
  vector[3] beta;
}
transformed parameters {
  matrix[n_dogs, n_trials] eta;
  for (dog in 1 : n_dogs) {
    real shocks = 0;
    for (trial in 1 : n_trials) {
      real avoided = trial - 1 - shocks;
      eta[dog, trial] = beta[1] + beta[2] * avoided + beta[3] * shocks;
      shocks += y[dog, trial];
    }
  }
}
model {
  for (dog in 1 : n_dogs) {
    for (trial in 1 : n_trials) {
      y[dog, trial] ~ bernoulli_logit(eta[dog, trial]);
    }
  }
  beta ~ normal(0, 100);
}
