// Six tests of fifty pupils that share one factor, with positive loadings.
data {
  matrix[50, 6] y;
}
parameters {
  vector[50] factor;
  vector[6] mu;
  vector<lower=0>[6] load;
  vector<lower=0>[6] s;
}
model {
  factor ~ normal(0, 1);
  mu ~ normal(0, 5);
  load ~ normal(0, 1);
  s ~ gamma(3, 4);
  for (j in 1 : 6) y[ : , j] ~ normal(mu[j] + load[j] * factor, s[j]);
}
