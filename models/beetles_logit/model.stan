// Mortality of beetles by dose of carbon disulphide, logit link.
data {
  int<lower=0> N;
  array[N] int<lower=0> n;
  array[N] int<lower=0> r;
  vector[N] x;
}
transformed data {
  real x_mean = mean(x);
}
parameters {
  real at_mean;
  real slope;
}
model {
  at_mean ~ normal(0, 10000);
  slope ~ normal(0, 10000);
  for (dose in 1 : N)
    r[dose] ~ binomial_logit(n[dose], at_mean + slope * (x[dose] - x_mean));
}
generated quantities {
  real lethal_dose_50 = x_mean - at_mean / slope;
  vector[N] expected = to_vector(n) .* inv_logit(at_mean + slope * (x - x_mean));
}
