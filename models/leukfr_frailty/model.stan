// Remission of leukaemia in pairs of patients: Cox regression by counting-process
// increments with a frailty of every pair.
data {
  int<lower=0> N;
  int<lower=1> NT;
  int<lower=1> Npair;
  array[N] int<lower=1, upper=Npair> pair;
  array[N] int<lower=0> obs_t;
  array[NT + 1] int<lower=0> t;
  array[N] int<lower=0> fail;
  vector[N] Z;
}
transformed data {
  array[N, NT] int at_risk;
  array[N, NT] int event;
  for (i in 1 : N) {
    for (j in 1 : NT) {
      at_risk[i, j] = obs_t[i] >= t[j] ? 1 : 0;
      event[i, j] = at_risk[i, j] * (t[j + 1] > obs_t[i] ? 1 : 0) * fail[i];
    }
  }
}
parameters {
  real beta;
  vector[Npair] b;
  real<lower=0> sigma;
  vector<lower=0>[NT] dL0;
}
model {
  beta ~ normal(0, 5);
  sigma ~ normal(0, 1);
  b ~ normal(0, sigma);
  for (j in 1 : NT) {
    dL0[j] ~ gamma(0.1 * 0.001 * (t[j + 1] - t[j]) + 0.01, 0.001);
    for (i in 1 : N) {
      if (at_risk[i, j] == 1) {
        event[i, j] ~ poisson(exp(beta * Z[i] + b[pair[i]]) * dL0[j]);
      }
    }
  }
}
