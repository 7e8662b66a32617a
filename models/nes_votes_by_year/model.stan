// Votes for the Republican candidate by income in thirteen elections: intercepts
// and slopes vary over the years, correlated; votes are counts by year and income.
data {
  int<lower=1> Y;
  int<lower=1> N;
  array[N] int<lower=1, upper=Y> year;
  vector[N] income;
  array[N] int<lower=0> votes;
  array[N] int<lower=0> voters;
}
parameters {
  vector[2] mean_effect;
  vector<lower=0>[2] sd_effect;
  cholesky_factor_corr[2] L;
  matrix[2, Y] effect_std;
}
transformed parameters {
  matrix[2, Y] effect = diag_pre_multiply(sd_effect, L) * effect_std;
}
model {
  mean_effect ~ normal(0, 2);
  sd_effect ~ normal(0, 1);
  L ~ lkj_corr_cholesky(2);
  to_vector(effect_std) ~ std_normal();
  for (n in 1 : N) {
    real a = mean_effect[1] + effect[1, year[n]];
    real b = mean_effect[2] + effect[2, year[n]];
    votes[n] ~ binomial_logit(voters[n], a + b * (income[n] - 3));
  }
}
