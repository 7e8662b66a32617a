// A drug taken by mouth, measured five times: absorption and elimination may change places, and priors hardly tell them apart.
data {
  vector[5] t;
  vector[5] y;
}
parameters {
  real<lower=0> absorbed;
  real<lower=0> cleared;
  real<lower=0> volume;
  real<lower=0> s;
}
model {
  vector[5] mean = 100 / volume * absorbed / (absorbed - cleared) * (exp(-cleared * t) - exp(-absorbed * t));
  absorbed ~ lognormal(0, 0.7);
  cleared ~ lognormal(-0.7, 0.7);
  volume ~ lognormal(2.1, 0.6);
  s ~ gamma(8, 20);
  y ~ lognormal(log(mean), s);
}
