// Bioequivalence of two tablets in a cross-over trial.
data {
  int<lower=0> N;
  int<lower=0> P;
  array[N] int group;
  array[N, P] real Y;
  array[P] int sign;
}
parameters {
  real level;
  real tablet;
  real period;
  array[2] real<lower=0> var_;  // within subjects, between subjects
  vector[N] subject;
}
model {
  level ~ normal(0, 1000);
  tablet ~ normal(0, 1000);
  period ~ normal(0, 1000);
  var_ ~ inv_gamma(0.001, 0.001);
  subject ~ normal(0, sqrt(var_[2]));
  for (n in 1 : N) {
    for (p in 1 : P) {
      int given = group[n] == 1 ? p : P + 1 - p;
      Y[n, p] ~ normal(level + subject[n] + 0.5 * (sign[given] * tablet + sign[p] * period),
                       sqrt(var_[1]));
    }
  }
}
generated quantities {
  real ratio = exp(tablet);
  int equivalent = ratio > 0.8 && ratio < 1.2;
}
