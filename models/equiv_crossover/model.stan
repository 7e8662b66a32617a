// Bioequivalence of two tablets in a cross-over trial.
data {
  int<lower=0> N;
  int<lower=0> P;
  array[N] int group;
  array[N, P] real Y;
  array[P] int sign;
}
transformed data {
  array[N, P] int T;
  for (n in 1 : N) {
    for (p in 1 : P) {
      T[n, p] = group[n] == 1 ? p : P + 1 - p;
    }
  }
}
parameters {
  real mu;
  real phi;
  real pi_;
  real<lower=0> sigmasq1;
  real<lower=0> sigmasq2;
  array[N] real delta;
}
transformed parameters {
  real<lower=0> sigma1 = sqrt(sigmasq1);
  real<lower=0> sigma2 = sqrt(sigmasq2);
}
model {
  for (n in 1 : N) {
    array[P] real m;
    for (p in 1 : P)
      m[p] = mu + sign[T[n, p]] * phi / 2 + sign[p] * pi_ / 2 + delta[n];
    Y[n] ~ normal(m, sigma1);
  }
  delta ~ normal(0, sigma2);
  sigmasq1 ~ inv_gamma(.001, .001);
  sigmasq2 ~ inv_gamma(.001, .001);
  mu ~ normal(0.0, 1000);
  phi ~ normal(0.0, 1000);
  pi_ ~ normal(0.0, 1000);
}
generated quantities {
  real theta = exp(phi);
  int equivalent = theta > 0.8 && theta < 1.2;
}
