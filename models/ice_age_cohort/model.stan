// Breast cancer in Iceland by age and birth cohort: Poisson with a second-order
// random walk over cohorts.
data {
  int<lower=0> N;
  int<lower=0> Nage;
  int<lower=0> K;
  array[N] int<lower=1, upper=K> year;
  array[N] int<lower=0> cases;
  array[N] int<lower=1, upper=Nage> age;
  array[N] int<lower=0> pyr;
}
parameters {
  vector[Nage - 1] alpha_free;
  vector[K] beta;
  real<lower=0> sigma;
}
transformed parameters {
  vector[Nage] alpha = append_row(rep_vector(0, 1), alpha_free);
}
model {
  vector[N] eta;
  sigma ~ normal(0, 1);
  alpha_free ~ normal(0, 10);
  beta[1 : 2] ~ normal(-8, 5);
  for (k in 3 : K) {
    beta[k] ~ normal(2 * beta[k - 1] - beta[k - 2], sigma);
  }
  for (i in 1 : N) {
    eta[i] = log(pyr[i]) + alpha[age[i]] + beta[year[i]];
  }
  cases ~ poisson_log(eta);
}
