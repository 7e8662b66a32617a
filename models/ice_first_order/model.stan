// Breast cancer in Iceland by age and birth cohort: overdispersed counts with a
// first-order random walk over cohorts.
data {
  int<lower=0> N;
  int<lower=0> Nage;
  int<lower=0> K;
  array[N] int<lower=1, upper=K> year;
  array[N] int<lower=0> cases;
  array[N] int<lower=1, upper=Nage> age;
  vector<lower=0>[N] pyr;
}
parameters {
  vector[Nage] alpha;
  vector[K - 1] step;
  real<lower=0> sigma;
  real<lower=0> phi;
}
transformed parameters {
  vector[K] beta = append_row(0, cumulative_sum(sigma * step));
}
model {
  alpha ~ normal(-8, 3);
  step ~ std_normal();
  sigma ~ normal(0, 0.5);
  phi ~ gamma(2, 0.1);
  cases ~ neg_binomial_2_log(alpha[age] + beta[year] + log(pyr), phi);
}
