// A hidden Markov chain of two regimes with ordered means, by the forward algorithm, 120 steps.
data {
  vector[120] y;
}
parameters {
  real<lower=0, upper=1> stay;
  real<lower=0, upper=1> linger;
  ordered[2] mu;
  real<lower=0> s;
}
model {
  matrix[2, 2] step = log([[stay, 1 - stay], [1 - linger, linger]]);
  vector[2] alpha;
  stay ~ beta(4, 1);
  linger ~ beta(4, 1);
  mu ~ normal(0, 2);
  s ~ exponential(1);
  for (k in 1 : 2) alpha[k] = -log2() + normal_lpdf(y[1] | mu[k], s);
  for (i in 2 : 120) {
    vector[2] next;
    for (k in 1 : 2) next[k] = log_sum_exp(alpha + step[ : , k]) + normal_lpdf(y[i] | mu[k], s);
    alpha = next;
  }
  target += log_sum_exp(alpha);
}
