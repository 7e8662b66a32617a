// Ideology scores of congressmen in districts where both parties win, on party
// and vote share, Student t errors.
data {
  int<lower=0> N;
  vector[N] score1;
  vector[N] party;
  vector[N] x;
}
parameters {
  real intercept;
  real b_party;
  real b_share;
  real<lower=0> sigma;
}
model {
  intercept ~ normal(0, 1);
  b_party ~ normal(0, 1);
  b_share ~ normal(0, 2);
  sigma ~ normal(0, 1);
  score1 ~ student_t(4, intercept + b_party * party + b_share * (x - 0.5), sigma);
}
