// Children's test scores on the mother's schooling and IQ with interaction,
// predictors divided by two standard deviations.
data {
  int<lower=0> N;
  vector<lower=0, upper=200>[N] kid_score;
  vector<lower=0, upper=1>[N] mom_hs;
  vector<lower=0, upper=200>[N] mom_iq;
}
transformed data {
  matrix[N, 3] x;
  x[ : , 1] = (mom_hs - mean(mom_hs)) / (2 * sd(mom_hs));
  x[ : , 2] = (mom_iq - mean(mom_iq)) / (2 * sd(mom_iq));
  x[ : , 3] = x[ : , 1] .* x[ : , 2];
}
parameters {
  real alpha;
  vector[3] beta;
  real<lower=0> sigma;
}
model {
  kid_score ~ normal_id_glm(x, alpha, beta, sigma);
}
