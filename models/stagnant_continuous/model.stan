// Stagnant band height of water: two lines that meet at a change point anywhere
// on the axis, joined smoothly.
data {
  int<lower=0> N;
  vector[N] x;
  vector[N] Y;
}
parameters {
  real alpha;
  vector[2] beta;
  real<lower=min(x), upper=max(x)> change;
  real<lower=0> sigma;
}
model {
  alpha ~ normal(0, 5);
  beta ~ normal(0, 5);
  sigma ~ normal(0, 1);
  for (n in 1 : N) {
    real after = log1p_exp(20 * (x[n] - change)) / 20;
    Y[n] ~ normal(alpha + beta[1] * (x[n] - change) + (beta[2] - beta[1]) * after, sigma);
  }
}
