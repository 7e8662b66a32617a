// Response to doses by a sigmoid curve with four parameters, placebo included.
data {
  vector[42] dose;
  vector[42] y;
}
parameters {
  real base;
  real gain;
  real<lower=0> half;
  real<lower=0> hill;
  real<lower=0> s;
}
model {
  vector[42] power;
  for (i in 1 : 42) power[i] = dose[i] == 0 ? 0 : pow(dose[i] / half, hill);
  base ~ normal(0, 2);
  gain ~ normal(0, 5);
  half ~ lognormal(2.5, 0.8);
  hill ~ lognormal(0, 0.4);
  s ~ normal(0, 2);
  y ~ normal(base + gain * power ./ (1 + power), s);
}
