// One dose of a drug: first-order absorption and Michaelis-Menten elimination in one
// compartment, with lognormal errors of the concentration.
functions {
  vector amounts(real t, vector y, real absorption, real fastest, real half, real volume) {
    real concentration = y[2] / volume;
    real eliminated = fastest * concentration / (half + concentration);
    return [-absorption * y[1], absorption * y[1] - eliminated]';
  }
}
data {
  int<lower=1> N;
  real<lower=0> dose;
  array[N] real<lower=0> hours;
  vector<lower=0>[N] concentration;
}
parameters {
  real<lower=0> absorption;
  real<lower=0> fastest;
  real<lower=0> half;
  real<lower=0> volume;
  real<lower=0> sigma;
}
model {
  array[N] vector[2] y = ode_bdf_tol(amounts, [dose, 0]', 0, hours, 1e-8, 1e-8, 100000,
                                     absorption, fastest, half, volume);
  absorption ~ lognormal(0, 0.5);
  fastest ~ lognormal(1, 0.5);
  half ~ lognormal(0.7, 0.5);
  volume ~ lognormal(1, 0.5);
  sigma ~ exponential(5);
  concentration ~ lognormal(log(to_vector(y[, 2]) / volume), sigma);
}
