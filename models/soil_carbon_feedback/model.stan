// Carbon respired by incubated soil: two pools that decompose and feed each other, in the
// older form of the solvers.
functions {
  array[] real pools(real t, array[] real c, array[] real theta, array[] real x_r, array[] int x_i) {
    real first = theta[1] * c[1];
    real second = theta[2] * c[2];
    return {theta[4] * second - first, theta[3] * first - second};
  }
}
data {
  int<lower=1> N;
  real<lower=0> total;
  array[N] real<lower=0> days;
  vector<lower=0>[N] respired;
}
transformed data {
  array[0] real x_r;
  array[0] int x_i;
}
parameters {
  vector<lower=0>[2] rate;
  vector<lower=0, upper=1>[2] transfer;
  real<lower=0, upper=1> share;
  real<lower=0> sigma;
}
transformed parameters {
  vector[N] mean_respired;
  {
    array[N, 2] real c = integrate_ode_rk45(pools, {share * total, (1 - share) * total}, 0, days,
                                            append_array(to_array_1d(rate), to_array_1d(transfer)),
                                            x_r, x_i, 1e-8, 1e-8, 100000);
    for (n in 1 : N) {
      mean_respired[n] = total - sum(c[n]);
    }
  }
}
model {
  rate[1] ~ lognormal(-1.5, 0.7);
  rate[2] ~ lognormal(-4, 0.7);
  transfer ~ beta(2, 4);
  share ~ beta(2, 4);
  sigma ~ exponential(1);
  respired ~ normal(mean_respired, sigma);
}
