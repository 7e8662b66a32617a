// Ideology scores of congressmen on party, vote share and their interaction; the
// two parties differ in spread.
data {
  int<lower=0> N;
  vector[N] score1;
  array[N] int<lower=0, upper=1> party;
  vector[N] x;
}
parameters {
  vector[2] level;
  vector[2] slope;
  vector[2] log_sd;
}
model {
  level ~ normal(0, 1);
  slope ~ normal(0, 2);
  log_sd ~ normal(-1, 1);
  for (n in 1 : N) {
    int p = party[n] + 1;
    score1[n] ~ normal(level[p] + slope[p] * (x[n] - 0.5), exp(log_sd[p]));
  }
}
