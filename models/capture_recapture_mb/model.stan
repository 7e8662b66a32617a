// Closed population, detection that changes after the first capture; unseen
// individuals by data augmentation.
data {
  int<lower=0> M;  // augmented population size
  int<lower=0> T;  // occasions
  array[M, T] int<lower=0, upper=1> y;
}
transformed data {
  array[M] int<lower=0, upper=T> s;
  int<lower=0, upper=M> C = 0;
  for (i in 1 : M) {
    s[i] = sum(y[i]);
    if (s[i] > 0) {
      C += 1;
    }
  }
}
parameters {
  real<lower=0, upper=1> omega;  // inclusion
  real<lower=0, upper=1> p;      // detection before the first capture
  real<lower=0, upper=1> c;      // detection after it
}
transformed parameters {
  array[M] vector<lower=0, upper=1>[T] p_eff;
  for (i in 1 : M) {
    p_eff[i, 1] = p;
    for (t in 2 : T) {
      p_eff[i, t] = sum(head(y[i], t - 1)) > 0 ? c : p;
    }
  }
}
model {
  for (i in 1 : M) {
    if (s[i] > 0) {
      target += bernoulli_lpmf(1 | omega) + bernoulli_lpmf(y[i] | p_eff[i]);
    } else {
      target += log_sum_exp(bernoulli_lpmf(1 | omega) + bernoulli_lpmf(y[i] | p_eff[i]),
                            bernoulli_lpmf(0 | omega));
    }
  }
}
generated quantities {
  real omega_nd = (omega * (1 - p) ^ T) / (omega * (1 - p) ^ T + (1 - omega));
  int<lower=C, upper=M> N = C + binomial_rng(M - C, omega_nd);
}
