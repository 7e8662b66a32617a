// Vote for the Republican candidate of 1992 on income, fused logistic density.
data {
  int<lower=1> N;
  matrix[N, 1] income;
  array[N] int<lower=0, upper=1> vote;
}
parameters {
  real alpha;
  vector[1] beta;
}
model {
  alpha ~ normal(0, 2.5);
  beta ~ normal(0, 1);
  vote ~ bernoulli_logit_glm(income, alpha, beta);
}
generated quantities {
  vector[5] p_vote;
  for (k in 1 : 5) {
    p_vote[k] = inv_logit(alpha + beta[1] * k);
  }
}
