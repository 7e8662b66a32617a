// Seizures of epileptics over four visits: a gamma effect of every patient,
// integrated out against the patient's total.
data {
  int<lower=0> N;
  int<lower=0> T;
  array[N, T] int<lower=0> y;
  vector[N] Trt;
  vector[N] log_Base4;
  vector[N] log_Age;
}
transformed data {
  array[N] int total;
  vector[N] base = log_Base4 - mean(log_Base4);
  vector[N] age = log_Age - mean(log_Age);
  for (i in 1 : N) {
    total[i] = sum(y[i]);
  }
}
parameters {
  real alpha;
  vector[4] beta;
  real<lower=0> phi;
}
model {
  alpha ~ normal(2, 2);
  beta ~ normal(0, 1);
  phi ~ gamma(2, 0.5);
  total ~ neg_binomial_2_log(alpha + log(T) + beta[1] * base + beta[2] * Trt
                             + beta[3] * base .* Trt + beta[4] * age, phi);
}
