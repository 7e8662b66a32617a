// Size of a closed population: animals differ in how easily they are caught, a
// normal effect on the logit; records of zeros stand for animals never seen.
data {
  int<lower=0> M;
  int<lower=0> T;
  array[M, T] int<lower=0, upper=1> y;
}
transformed data {
  array[M] int caught;
  for (i in 1 : M) {
    caught[i] = sum(y[i]);
  }
}
parameters {
  real<lower=0, upper=1> omega;
  real mean_logit;
  real<lower=0> sigma;
  vector[M] z;
}
model {
  mean_logit ~ normal(0, 1.5);
  sigma ~ normal(0, 1);
  z ~ std_normal();
  for (i in 1 : M) {
    real eta = mean_logit + sigma * z[i];
    if (caught[i] > 0) {
      target += bernoulli_lpmf(1 | omega) + binomial_logit_lpmf(caught[i] | T, eta);
    } else {
      target += log_sum_exp(bernoulli_lpmf(1 | omega) + binomial_logit_lpmf(0 | T, eta),
                            bernoulli_lpmf(0 | omega));
    }
  }
}
