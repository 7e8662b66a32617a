// The first eight days of an epidemic by a differential equation, which show growth and hardly any recovery: curved, with a long tail.
functions {
  vector rate(real t, vector y, real beta, real gamma) {
    real fresh = beta * y[1] * y[2] / 1e5;
    return [-fresh, fresh - gamma * y[2]]';
  }
}
transformed data {
  array[8] int y = {13, 13, 27, 37, 76, 129, 215, 382};
}
parameters {
  real<lower=0> beta;
  real<lower=0> gamma;
  real li;
}
model {
  real first = 1e5 * inv_logit(li);
  array[8] vector[2] state = ode_rk45(rate, [1e5 - first, first]', 0, linspaced_array(8, 1, 8), beta, gamma);
  beta ~ lognormal(0, 1);
  gamma ~ lognormal(-1, 1.5);
  li ~ normal(-10, 2);
  for (n in 1 : 8) y[n] ~ poisson(state[n][2]);
}
