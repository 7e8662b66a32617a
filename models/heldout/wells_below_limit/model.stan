// Nitrate in three hundred wells; 160 values under a limit of detection are parameters.
data {
  real limit;
  vector[160] zl;
  vector[140] zh;
  vector[140] y;
}
parameters {
  real a;
  real b;
  real<lower=0> s;
  vector<upper=limit>[160] under;
}
model {
  a ~ normal(0, 2);
  b ~ normal(0, 2);
  s ~ exponential(1);
  under ~ normal(a + b * zl, s);
  y ~ normal(a + b * zh, s);
}
