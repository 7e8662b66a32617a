// An educational television programme in four grades: treatment and pre-test
// effects, partially pooled over the grades.
data {
  int<lower=0> N;
  array[N] int<lower=1, upper=4> grade;
  vector[N] treatment;
  vector[N] pre_test;
  vector[N] post_test;
}
transformed data {
  vector[4] middle;
  vector[N] pre;
  for (g in 1 : 4) {
    real sum_pre = 0;
    int count = 0;
    for (n in 1 : N) {
      if (grade[n] == g) {
        sum_pre += pre_test[n];
        count += 1;
      }
    }
    middle[g] = sum_pre / count;
  }
  pre = (pre_test - middle[grade]) / 10;
}
parameters {
  vector[4] level;
  vector[4] effect;
  vector[4] slope;
  real mu_effect;
  real<lower=0> sd_effect;
  real mu_slope;
  real<lower=0> sd_slope;
  vector<lower=0>[4] sigma;
}
model {
  level ~ normal(90, 30);
  mu_effect ~ normal(0, 10);
  sd_effect ~ normal(0, 5);
  effect ~ normal(mu_effect, sd_effect);
  mu_slope ~ normal(0, 20);
  sd_slope ~ normal(0, 20);
  slope ~ normal(mu_slope, sd_slope);
  sigma ~ normal(0, 20);
  post_test ~ normal(level[grade] + effect[grade] .* treatment + slope[grade] .* pre,
                     sigma[grade]);
}
