// GARCH(1,1): today's variance from yesterday's shock and variance.
data {
  int<lower=0> T;
  array[T] real y;
  real<lower=0> sigma1;
}
parameters {
  real mean_return;
  real<lower=0> base;
  real<lower=0, upper=1> shock;
  real<lower=0, upper=1 - shock> memory;
}
model {
  vector[T] scale;
  real variance_now = square(sigma1);
  for (day in 1 : T) {
    scale[day] = sqrt(variance_now);
    variance_now = base + shock * square(y[day] - mean_return) + memory * variance_now;
  }
  y ~ normal(mean_return, scale);
}
