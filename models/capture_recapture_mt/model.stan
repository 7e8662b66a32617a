// Closed population with detection that varies by occasion; unseen
// individuals by data augmentation.
data {
  int<lower=0> M;
  int<lower=0> T;
  array[M, T] int<lower=0, upper=1> y;
}
transformed data {
  array[M] int s;
  int C = 0;
  for (i in 1 : M) {
    s[i] = sum(y[i]);
    if (s[i] > 0)
      C += 1;
  }
}
parameters {
  real<lower=0, upper=1> omega;
  vector<lower=0, upper=1>[T] p;
}
model {
  for (i in 1 : M) {
    if (s[i] > 0) {
      1 ~ bernoulli(omega);
      y[i] ~ bernoulli(p);
    } else {
      real log_in = bernoulli_lpmf(1 | omega) + bernoulli_lpmf(y[i] | p);
      target += log_sum_exp(log_in, bernoulli_lpmf(0 | omega));
    }
  }
}
generated quantities {
  real pr = prod(rep_vector(1, T) - p);
  real omega_nd = omega * pr / (omega * pr + (1 - omega));
  int N = C + binomial_rng(M - C, omega_nd);
}
