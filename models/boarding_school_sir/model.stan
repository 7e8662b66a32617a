// Influenza in a boarding school, 1978: susceptible, infected and recovered boys,
// with overdispersed counts of boys in bed.
functions {
  vector contagion(real t, vector y, real beta, real gamma, data real boys) {
    real infections = beta * y[1] * y[2] / boys;
    real recoveries = gamma * y[2];
    return [-infections, infections - recoveries]';
  }
}
data {
  int<lower=1> days;
  int<lower=2> boys;
  array[days] int<lower=0> in_bed;
}
transformed data {
  array[days] real day = linspaced_array(days, 1, days);
  vector[2] start = [boys - 1, 1]';
}
parameters {
  real<lower=0> beta;
  real<lower=0> gamma;
  real<lower=0> dispersion;
}
model {
  array[days] vector[2] y = ode_ckrk_tol(contagion, start, 0, day, 1e-8, 1e-8, 100000,
                                         beta, gamma, boys);
  beta ~ normal(2, 1);
  gamma ~ normal(0.5, 0.5);
  dispersion ~ exponential(5);
  in_bed ~ neg_binomial_2(to_vector(y[, 2]) + 1e-5, inv(dispersion));
}
generated quantities {
  real reproduction = beta / gamma;
}
