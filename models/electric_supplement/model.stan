// Supplementing or replacing lessons by television in four grades: effects of the
// grades exchangeable.
data {
  int<lower=0> N;
  array[N] int<lower=1, upper=4> grade;
  vector[N] supp;
  vector[N] pre_test;
  vector[N] post_test;
}
parameters {
  vector[4] level;
  vector[4] slope;
  vector[4] effect_std;
  real mu_effect;
  real<lower=0> sd_effect;
  vector[4] log_sigma;
}
transformed parameters {
  vector[4] effect = mu_effect + sd_effect * effect_std;
}
model {
  level ~ normal(50, 50);
  slope ~ normal(1, 2);
  effect_std ~ std_normal();
  mu_effect ~ normal(0, 10);
  sd_effect ~ normal(0, 5);
  log_sigma ~ normal(1.5, 1);
  post_test ~ normal(level[grade] + slope[grade] .* pre_test + effect[grade] .* supp,
                     exp(log_sigma[grade]));
}
