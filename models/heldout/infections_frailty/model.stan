// Times to infection of thirty patients, three each, with Weibull hazards and gamma frailties.
data {
  array[90] int patient;
  vector[90] treated;
  vector[90] t;
  array[90] int seen;
}
parameters {
  real a;
  real b;
  real<lower=0> shape;
  real<lower=0> varied;
  vector<lower=0>[30] frailty;
}
model {
  vector[90] rate = exp(a + b * treated) .* frailty[patient];
  a ~ normal(-2, 2);
  b ~ normal(0, 1);
  shape ~ gamma(3, 2);
  varied ~ gamma(2, 3);
  frailty ~ gamma(1 / varied, 1 / varied);
  for (i in 1 : 90) {
    if (seen[i] == 1) target += log(rate[i] * shape) + (shape - 1) * log(t[i]);
    target += -rate[i] * pow(t[i], shape);
  }
}
