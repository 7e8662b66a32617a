// Who receives help from welfare or charity: logistic regression on sex, age,
// origin and schooling with earnings below the top code, every second record.
data {
  int<lower=0> N;
  array[N] int<lower=0, upper=1> help;
  vector[N] male;
  vector[N] over65;
  vector[N] white;
  vector[N] immig;
  array[N] int<lower=1, upper=4> educ_r;
  vector[N] earnings_top;
}
parameters {
  real alpha;
  vector[5] beta;
  vector[4] schooling;
  real<lower=0> sd_schooling;
}
model {
  alpha ~ normal(-2, 2);
  beta ~ normal(0, 1);
  schooling ~ normal(0, sd_schooling);
  sd_schooling ~ normal(0, 1);
  help ~ bernoulli_logit(alpha + beta[1] * male + beta[2] * over65 + beta[3] * white
                         + beta[4] * immig + beta[5] * earnings_top / 50
                         + schooling[educ_r]);
}
