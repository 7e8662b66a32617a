// Stagnant band height of water: two lines that meet at a change point, which
// is summed over the observed positions.
data {
  int<lower=0> N;
  array[N] real x;
  array[N] real Y;
}
transformed data {
  real log_unif = -log(N);
}
parameters {
  real<lower=0> sigma;
  real<lower=0> alpha;
  array[2] real beta;
}
transformed parameters {
  vector[N] log_probs = rep_vector(log_unif, N);
  for (k in 1 : N) {
    for (n in 1 : N) {
      log_probs[k] += normal_lpdf(Y[n] | x[n] < x[k]
                                         ? alpha + beta[1] * (x[n] - x[k])
                                         : alpha + beta[2] * (x[n] - x[k]), sigma);
    }
  }
}
model {
  alpha ~ normal(0, 5);
  beta ~ normal(0, 5);
  sigma ~ cauchy(0, 5);
  target += log_sum_exp(log_probs);
}
generated quantities {
  int<lower=1, upper=N> k = categorical_logit_rng(log_probs);
  real x_change = x[k];
}
