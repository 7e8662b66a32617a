// Strength of pine boards on density (x) or adjusted density (z): two
// regressions averaged with an unknown weight.
data {
  int<lower=0> N;
  vector[N] y;
  vector[N] x;
  vector[N] z;
}
transformed data {
  vector[N] y_std = (y - mean(y)) / sd(y);
  vector[N] x_std = (x - mean(x)) / sd(x);
  vector[N] z_std = (z - mean(z)) / sd(z);
}
parameters {
  real alpha;
  real beta;
  real gamma;
  real delta;
  vector<lower=0>[2] tau;
  real<lower=0, upper=1> lambda;
}
transformed parameters {
  vector<lower=0>[2] sigma;
  vector[2] log_py;
  for (i in 1 : 2)
    sigma[i] = 1 / sqrt(tau[i]);
  log_py[1] = log(lambda) + normal_lpdf(y_std | alpha + beta * x_std, sigma[1]);
  log_py[2] = log1m(lambda) + normal_lpdf(y_std | gamma + delta * z_std, sigma[2]);
}
model {
  alpha ~ normal(0, 10);
  beta ~ normal(0, 5);
  gamma ~ normal(0, 10);
  delta ~ normal(0, 5);
  tau ~ gamma(1, 1);
  lambda ~ beta(1, 1);
  target += log_sum_exp(log_py);
}
generated quantities {
  real pM2 = bernoulli_rng(softmax(log_py)[2]);
}
