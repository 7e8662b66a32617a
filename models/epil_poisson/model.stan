// Seizures of epileptics over four visits: Poisson with subject and visit
// effects (Breslow and Clayton 1993).
data {
  int<lower=0> N;
  int<lower=0> T;
  array[N, T] int<lower=0> y;
  vector[N] Trt;
  array[T] int V4;
  vector[N] log_Base4;
  vector[N] log_Age;
  vector[N] BT;
  real log_Age_bar;
  real Trt_bar;
  real BT_bar;
  real V4_bar;
  real log_Base4_bar;
}
parameters {
  real a0;
  real alpha_Base;
  real alpha_Trt;
  real alpha_BT;
  real alpha_Age;
  real alpha_V4;
  vector[N] b1;
  array[T] vector[N] b;
  real<lower=0> sigma_b1;
  real<lower=0> sigma_b;
}
model {
  a0 ~ normal(0, 10);
  alpha_Base ~ normal(0, 10);
  alpha_Trt ~ normal(0, 10);
  alpha_BT ~ normal(0, 10);
  alpha_Age ~ normal(0, 10);
  alpha_V4 ~ normal(0, 10);
  sigma_b1 ~ normal(0, 1);
  sigma_b ~ normal(0, 1);
  b1 ~ normal(0, sigma_b1);
  for (t in 1 : T) {
    b[t] ~ normal(0, sigma_b);
    y[1 : N, t] ~ poisson_log(a0 + alpha_Base * (log_Base4 - log_Base4_bar)
                              + alpha_Trt * (Trt - Trt_bar) + alpha_BT * (BT - BT_bar)
                              + alpha_Age * (log_Age - log_Age_bar)
                              + alpha_V4 * (V4[t] - V4_bar) + b1 + b[t]);
  }
}
