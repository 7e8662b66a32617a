// Heights of eighty children at four ages, with intercepts and slopes of their own, correlated, centred.
data {
  vector[4] age;
  matrix[80, 4] y;
}
parameters {
  vector[2] mu;
  vector<lower=0>[2] tau;
  cholesky_factor_corr[2] corr;
  array[80] vector[2] own;
  real<lower=0> s;
}
model {
  mu[1] ~ normal(80, 20);
  mu[2] ~ normal(5, 5);
  tau ~ exponential(0.5);
  corr ~ lkj_corr_cholesky(2);
  s ~ exponential(1);
  own ~ multi_normal_cholesky(mu, diag_pre_multiply(tau, corr));
  for (i in 1 : 80) y[i]' ~ normal(own[i, 1] + own[i, 2] * age, s);
}
