// Five grades that eight judges give to eighteen essays, both with effects of their own.
data {
  array[144] int judge;
  array[144] int essay;
  array[144] int y;
}
parameters {
  vector[8] strict;
  vector[18] good;
  real<lower=0> sj;
  real<lower=0> se;
  ordered[4] cut;
}
model {
  strict ~ normal(0, 1);
  good ~ normal(0, 1);
  [sj, se] ~ normal(0, 1.5);
  cut ~ normal(0, 3);
  y ~ ordered_probit(se * good[essay] - sj * strict[judge], cut);
}
