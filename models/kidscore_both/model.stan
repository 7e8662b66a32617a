// Children's test scores on the mother's schooling and IQ, without interaction.
data {
  int<lower=0> N;
  vector<lower=0, upper=200>[N] kid_score;
  vector<lower=0, upper=1>[N] mom_hs;
  vector<lower=0, upper=200>[N] mom_iq;
}
parameters {
  real intercept;
  real b_hs;
  real b_iq;
  real<lower=0> sigma;
}
model {
  target += cauchy_lpdf(sigma | 0, 2.5);
  target += normal_lpdf(kid_score | intercept + b_hs * mom_hs + b_iq * mom_iq, sigma);
}
