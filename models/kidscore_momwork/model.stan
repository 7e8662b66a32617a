// Children's test scores on when the mother worked, a factor of four levels.
data {
  int<lower=0> N;
  vector<lower=0, upper=200>[N] kid_score;
  array[N] int<lower=1, upper=4> mom_work;
}
transformed data {
  array[3] vector[N] level;
  for (k in 1 : 3) {
    for (n in 1 : N) {
      level[k][n] = mom_work[n] == k + 1;
    }
  }
}
parameters {
  vector[4] beta;
  real<lower=0> sigma;
}
model {
  kid_score ~ normal(beta[1] + beta[2] * level[1] + beta[3] * level[2]
                     + beta[4] * level[3], sigma);
}
