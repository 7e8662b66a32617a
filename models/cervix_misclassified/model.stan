// Case-control study of cervical cancer with exposure measured fully on some
// and with error on most: the unseen exposure is summed out.
data {
  int<lower=0> Nc;
  int<lower=0> Ni;
  array[Nc] int<lower=0, upper=1> xc;
  array[Nc] int<lower=0, upper=1> wc;
  array[Nc] int<lower=0, upper=1> dc;
  array[Ni] int<lower=0, upper=1> wi;
  array[Ni] int<lower=0, upper=1> di;
}
parameters {
  matrix<lower=0, upper=1>[2, 2] phi;  // chance of w = 1 by x and d
  real<lower=0, upper=1> q;
  real beta0C;
  real beta;
}
model {
  for (n in 1 : Nc) {
    xc[n] ~ bernoulli(q);
    dc[n] ~ bernoulli_logit(beta0C + beta * xc[n]);
    wc[n] ~ bernoulli(phi[xc[n] + 1, dc[n] + 1]);
  }
  for (n in 1 : Ni) {
    target += log_mix(q,
                      bernoulli_logit_lpmf(di[n] | beta0C + beta)
                      + bernoulli_lpmf(wi[n] | phi[2, di[n] + 1]),
                      bernoulli_logit_lpmf(di[n] | beta0C)
                      + bernoulli_lpmf(wi[n] | phi[1, di[n] + 1]));
  }
  q ~ uniform(0, 1);
  beta0C ~ normal(0, 10);
  beta ~ normal(0, 10);
}
generated quantities {
  real gamma1 = 1 / (1 + (1 + exp(beta0C + beta)) / (1 + exp(beta0C)) * (1 - q) / q);
}
