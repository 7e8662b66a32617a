// Vote share in 1988 on that of 1986 and incumbency, shares kept inside (0, 1)
// in the predictions.
data {
  int<lower=0> N;
  vector<lower=0, upper=1>[N] vote_86;
  vector<lower=0, upper=1>[N] vote_88;
  vector<lower=-1, upper=1>[N] incumbency_88;
}
parameters {
  vector[3] beta;
  real<lower=0> sigma;
}
model {
  beta ~ normal(0, 1);
  sigma ~ normal(0, 0.5);
  vote_88 ~ normal(beta[1] + beta[2] * vote_86 + beta[3] * incumbency_88, sigma);
}
generated quantities {
  vector[N] share;
  for (n in 1 : N) {
    share[n] = fmin(1, fmax(0, normal_rng(beta[1] + beta[2] * vote_86[n]
                                          + beta[3] * incumbency_88[n], sigma)));
  }
  int seats = 0;
  for (n in 1 : N) {
    seats += share[n] > 0.5;
  }
}
