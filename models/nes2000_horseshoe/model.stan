// Party identification in 2000 with a regularised horseshoe-like prior: local
// half-Cauchy scales under a half-normal one.
data {
  int<lower=0> N;
  vector[N] partyid7;
  vector[N] real_ideo;
  vector[N] race_adj;
  array[N] int<lower=1, upper=4> age_discrete;
  vector[N] educ1;
  vector[N] gender;
  vector[N] income;
}
transformed data {
  int K = 8;
  matrix[N, K] x;
  x[ : , 1] = real_ideo - 4;
  x[ : , 2] = race_adj - 1;
  for (k in 2 : 4) {
    for (n in 1 : N) {
      x[n, k + 1] = age_discrete[n] == k ? 1 : 0;
    }
  }
  x[ : , 6] = educ1 - 2.5;
  x[ : , 7] = gender - 1;
  x[ : , 8] = income - 3;
}
parameters {
  real alpha;
  vector[K] beta_std;
  vector<lower=0>[K] local;
  real<lower=0> overall;
  real<lower=0> sigma;
}
transformed parameters {
  vector[K] beta = overall * local .* beta_std;
}
model {
  alpha ~ normal(4, 2);
  beta_std ~ std_normal();
  local ~ student_t(3, 0, 1);
  overall ~ normal(0, 0.5);
  sigma ~ normal(0, 3);
  partyid7 ~ normal_id_glm(x, alpha, beta, sigma);
}
