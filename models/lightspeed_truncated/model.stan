// Newcomb's measurements of the speed of light: Student t errors with a
// truncated prior on the location and a half-Cauchy scale.
data {
  int<lower=0> N;
  array[N] real y;
}
parameters {
  real<lower=0, upper=60> mu;
  real<lower=0> sigma;
  real<lower=0> nu_minus_one;
}
model {
  mu ~ normal(30, 15) T[0, 60];
  sigma ~ cauchy(0, 10) T[0, ];
  nu_minus_one ~ exponential(1 / 29.0);
  y ~ student_t(nu_minus_one + 1, mu, sigma);
}
