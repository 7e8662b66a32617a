// Law School Admission Test, two-parameter logistic model with the abilities
// integrated out on a grid, working on pattern counts.
functions {
  vector normal_grid(int n, real half_width) {
    vector[n] grid;
    for (i in 1 : n) {
      grid[i] = -half_width + 2 * half_width * (i - 1.0) / (n - 1.0);
    }
    return grid;
  }
  real pattern_lpmf(array[] int answers, vector a, vector b, vector grid, vector log_weight) {
    int n = rows(grid);
    vector[n] lp = log_weight;
    for (i in 1 : n) {
      lp[i] += bernoulli_logit_lpmf(answers | a * grid[i] + b);
    }
    return log_sum_exp(lp);
  }
}
data {
  int<lower=0> N;
  int<lower=0> R;
  int<lower=0> T;
  array[R] int<lower=0> culm;
  array[R, T] int<lower=0, upper=1> response;
}
transformed data {
  int Q = 15;
  vector[Q] grid = normal_grid(Q, 4);
  vector[Q] log_weight;
  array[R] int count;
  for (q in 1 : Q) {
    log_weight[q] = normal_lpdf(grid[q] | 0, 1);
  }
  log_weight = log_softmax(log_weight);
  for (p in 1 : R) {
    count[p] = p == 1 ? culm[1] : culm[p] - culm[p - 1];
  }
}
parameters {
  vector<lower=0>[T] a;
  vector[T] b;
}
model {
  a ~ lognormal(0, 1);
  b ~ normal(0, 3);
  for (p in 1 : R) {
    if (count[p] > 0) {
      target += count[p] * pattern_lpmf(response[p] | a, b, grid, log_weight);
    }
  }
}
