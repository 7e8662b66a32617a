// Times to failure under a hazard that rises and swings with the season: its integral has no
// closed form.
functions {
  real hazard(real t, real base, real trend, real season) {
    return exp(base + trend * sqrt(t) + season * sin(t));
  }
  real integrand(real t, real left, array[] real theta, array[] real x_r, array[] int x_i) {
    return hazard(t, theta[1], theta[2], theta[3]);
  }
}
data {
  int<lower=1> N;
  array[N] real<lower=0> time;
  array[N] int<lower=0, upper=1> failed;
}
transformed data {
  array[0] real x_r;
  array[0] int x_i;
}
parameters {
  real base;
  real trend;
  real season;
}
model {
  base ~ normal(-2, 1);
  trend ~ normal(0, 0.5);
  season ~ normal(0, 0.5);
  for (n in 1 : N) {
    target += -integrate_1d(integrand, 0, time[n], {base, trend, season}, x_r, x_i, 1e-8);
    if (failed[n]) {
      target += log(hazard(time[n], base, trend, season));
    }
  }
}
