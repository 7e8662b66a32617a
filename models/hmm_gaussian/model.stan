// Hidden Markov chain with K states and unit-variance normal emissions; the
// states are summed out by the forward algorithm.
data {
  int<lower=1> K;
  int<lower=1> N;
  array[N] real y;
}
parameters {
  array[K] simplex[K] theta;  // theta[j] is the law of the state that follows j
  positive_ordered[K] mu;
}
model {
  array[K] real acc;
  array[N, K] real gamma;

  mu[1] ~ normal(3, 1);
  mu[2] ~ normal(10, 1);
  for (k in 1 : K) {
    gamma[1, k] = normal_lpdf(y[1] | mu[k], 1);
  }
  for (t in 2 : N) {
    for (k in 1 : K) {
      for (j in 1 : K) {
        acc[j] = gamma[t - 1, j] + log(theta[j, k]) + normal_lpdf(y[t] | mu[k], 1);
      }
      gamma[t, k] = log_sum_exp(acc);
    }
  }
  target += log_sum_exp(gamma[N]);
}
generated quantities {
  // Most probable path of states (Viterbi).
  array[N] int<lower=1, upper=K> z;
  real log_p_z;
  {
    array[N, K] int back;
    array[N, K] real best;
    for (k in 1 : K) {
      best[1, k] = normal_lpdf(y[1] | mu[k], 1);
    }
    for (t in 2 : N) {
      for (k in 1 : K) {
        best[t, k] = negative_infinity();
        for (j in 1 : K) {
          real logp = best[t - 1, j] + log(theta[j, k]) + normal_lpdf(y[t] | mu[k], 1);
          if (logp > best[t, k]) {
            back[t, k] = j;
            best[t, k] = logp;
          }
        }
      }
    }
    log_p_z = max(best[N]);
    for (k in 1 : K) {
      if (best[N, k] == log_p_z) {
        z[N] = k;
      }
    }
    for (t in 1 : (N - 1)) {
      z[N - t] = back[N - t + 1, z[N - t + 1]];
    }
  }
}
