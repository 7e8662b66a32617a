// Switching to a safer well in Bangladesh, with centred predictors and an
// interaction.
data {
  int<lower=0> N;
  array[N] int<lower=0, upper=1> switched;
  vector[N] dist;
  vector[N] arsenic;
  vector[N] educ;
}
transformed data {
  vector[N] c_dist = (dist - mean(dist)) / 100;
  vector[N] c_arsenic = arsenic - mean(arsenic);
  vector[N] da_inter = c_dist .* c_arsenic;
  vector[N] educ4 = educ / 4;
}
parameters {
  vector[5] beta;
}
model {
  beta ~ normal(0, 5);
  switched ~ bernoulli_logit(beta[1] + beta[2] * c_dist + beta[3] * c_arsenic
                             + beta[4] * da_inter + beta[5] * educ4);
}
