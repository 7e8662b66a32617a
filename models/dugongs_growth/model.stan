// Length of sea cows by age: a saturating growth curve.
data {
  int<lower=0> N;
  array[N] real x;
  array[N] real Y;
}
parameters {
  real alpha;
  real beta;
  real<lower=.5, upper=1> lambda;
  real<lower=0> tau;
}
transformed parameters {
  real sigma = 1 / sqrt(tau);
  real U3 = logit(lambda);
}
model {
  array[N] real m;
  for (i in 1 : N)
    m[i] = alpha - beta * lambda ^ x[i];
  Y ~ normal(m, sigma);
  alpha ~ normal(0.0, 1000);
  beta ~ normal(0.0, 1000);
  lambda ~ uniform(.5, 1);
  tau ~ gamma(.0001, .0001);
}
generated quantities {
  array[N] real Y_mean;
  array[N] real Y_pred;
  for (i in 1 : N) {
    Y_mean[i] = alpha - beta * pow(lambda, x[i]);
    Y_pred[i] = normal_rng(Y_mean[i], sigma);
  }
}
