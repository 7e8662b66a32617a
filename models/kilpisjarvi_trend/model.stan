// Summer temperature at Kilpisjarvi by year, priors given as data.
data {
  int<lower=0> N;
  vector[N] x;
  vector[N] y;
  real xpred;
  real pmualpha;
  real psalpha;
  real pmubeta;
  real psbeta;
}
parameters {
  real alpha;
  real beta;
  real<lower=0> sigma;
}
transformed parameters {
  vector[N] mu = alpha + beta * x;
}
model {
  alpha ~ normal(pmualpha, psalpha);
  beta ~ normal(pmubeta, psbeta);
  y ~ normal(mu, sigma);
}
generated quantities {
  real ypred = normal_rng(alpha + beta * xpred, sigma);
  vector[N] log_lik;
  for (i in 1 : N)
    log_lik[i] = normal_lpdf(y[i] | mu[i], sigma);
}
