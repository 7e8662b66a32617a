// Children's test scores on the mother's schooling and IQ with interaction,
// predictors centred at conventional points.
data {
  int<lower=0> N;
  vector<lower=0, upper=200>[N] kid_score;
  vector<lower=0, upper=1>[N] mom_hs;
  vector<lower=0, upper=200>[N] mom_iq;
}
transformed data {
  vector[N] hs = mom_hs - 0.5;
  vector[N] iq = mom_iq - 100;
  vector[N] product = hs .* iq;
}
parameters {
  vector[4] beta;
  real<lower=0> sigma;
}
model {
  kid_score ~ normal(beta[1] + beta[2] * hs + beta[3] * iq + beta[4] * product, sigma);
}
