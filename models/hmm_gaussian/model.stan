// Hidden Markov chain with K states and unit-variance normal emissions; the
// states are summed out by the forward algorithm.
data {
  int<lower=1> K;
  int<lower=1> N;
  array[N] real y;
}
parameters {
  array[K] simplex[K] jump;  // jump[j] is the law of the state that follows j
  positive_ordered[K] level;
}
model {
  array[N, K] real forward;
  for (k in 1 : K) {
    forward[1, k] = normal_lpdf(y[1] | level[k], 1);
  }
  for (n in 2 : N) {
    for (to in 1 : K) {
      array[K] real reach;
      for (from in 1 : K) {
        reach[from] = forward[n - 1, from] + log(jump[from, to]);
      }
      forward[n, to] = log_sum_exp(reach) + normal_lpdf(y[n] | level[to], 1);
    }
  }
  target += log_sum_exp(forward[N]);
  level[1] ~ normal(3, 1);
  level[2] ~ normal(10, 1);
}
generated quantities {
  // A path of states drawn backwards from its law given the data.
  array[N] int<lower=1, upper=K> path = rep_array(1, N);
  {
    matrix[N, K] forward;
    for (k in 1 : K) {
      forward[1, k] = normal_lpdf(y[1] | level[k], 1);
    }
    for (n in 2 : N) {
      for (to in 1 : K) {
        vector[K] reach;
        for (from in 1 : K) {
          reach[from] = forward[n - 1, from] + log(jump[from, to]);
        }
        forward[n, to] = log_sum_exp(reach) + normal_lpdf(y[n] | level[to], 1);
      }
    }
    path[N] = categorical_logit_rng(forward[N]');
    for (back in 1 : N - 1) {
      int n = N - back;
      vector[K] weight = forward[n]';
      for (k in 1 : K) {
        weight[k] += log(jump[k, path[n + 1]]);
      }
      path[n] = categorical_logit_rng(weight);
    }
  }
}
