// Growth of 30 rats over five weeks, independent intercepts and slopes.
data {
  int<lower=0> N;
  int<lower=0> T;
  array[T] real x;
  array[N, T] real y;
  real xbar;
}
parameters {
  array[N] real weight;
  array[N] real gain;
  array[2] real centre;
  array[3] real<lower=0> var_;
}
transformed parameters {
  array[3] real<lower=0> sd_ = sqrt(var_);
}
model {
  centre ~ normal(0, 100);
  var_ ~ inv_gamma(0.001, 0.001);
  weight ~ normal(centre[1], sd_[2]);
  gain ~ normal(centre[2], sd_[3]);
  for (rat in 1 : N)
    for (week in 1 : T) {
      real expected = weight[rat] + gain[rat] * (x[week] - xbar);
      y[rat, week] ~ normal(expected, sd_[1]);
    }
}
generated quantities {
  real birth_weight = centre[1] - xbar * centre[2];
}
