// Educational television experiment: pairs of classes within grades, with
// grade-specific means, pre-test slopes and treatment effects.
data {
  int<lower=0> N;
  int<lower=0> n_pair;
  int<lower=0> n_grade;
  array[N] int<lower=1, upper=n_pair> pair;
  array[N] int<lower=1, upper=n_grade> grade;
  vector[N] treatment;
  vector[N] pre_test;
  vector[N] post_test;
}
transformed data {
  vector[N] pre_z;
  for (g in 1 : n_grade) {
    real total = 0;
    real total_sq = 0;
    int n_g = 0;
    for (n in 1 : N) {
      if (grade[n] == g) {
        total += pre_test[n];
        total_sq += square(pre_test[n]);
        n_g += 1;
      }
    }
    for (n in 1 : N) {
      if (grade[n] == g) {
        pre_z[n] = (pre_test[n] - total / n_g) / sqrt(total_sq / n_g - square(total / n_g));
      }
    }
  }
}
parameters {
  vector[n_grade] mu;
  vector[n_grade] slope;
  vector[n_grade] effect;
  vector[n_pair] pair_raw;
  real<lower=0> sigma_pair;
  vector<lower=0>[n_grade] sigma;
}
model {
  vector[n_pair] a = sigma_pair * pair_raw;
  mu ~ normal(100, 20);
  slope ~ normal(0, 10);
  effect ~ normal(0, 10);
  pair_raw ~ normal(0, 1);
  sigma_pair ~ normal(0, 10);
  sigma ~ normal(0, 10);
  post_test ~ normal(a[pair] + mu[grade] + slope[grade] .* pre_z + effect[grade] .* treatment,
                     sigma[grade]);
}
generated quantities {
  real mean_effect = mean(effect);
}
