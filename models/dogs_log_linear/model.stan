// Avoidance learning of dogs, log-linear: each avoidance and shock multiplies
// the chance of a shock.
data {
  int<lower=0> Ndogs;
  int<lower=0> Ntrials;
  array[Ndogs, Ntrials] int<lower=0, upper=1> Y;  // 1 if the shock was avoided
}
transformed data {
  array[Ndogs, Ntrials] int<lower=0, upper=1> y = Y;
  array[Ndogs, Ntrials] int xa;
  array[Ndogs, Ntrials] int xs;
  for (dog in 1 : Ndogs) {
    xa[dog, 1] = 0;
    xs[dog, 1] = 0;
    for (trial in 2 : Ntrials) {
      xa[dog, trial] = sum(Y[dog, 1 : trial - 1]);
      xs[dog, trial] = trial - 1 - xa[dog, trial];
    }
    for (trial in 1 : Ntrials) {
      y[dog, trial] = 1 - Y[dog, trial];
    }
  }
}
parameters {
  real<lower=0> minus_alpha;
  real<lower=0> minus_beta;
}
transformed parameters {
  real alpha = -minus_alpha;
  real beta = -minus_beta;
}
model {
  minus_alpha ~ normal(0, 0.5);
  minus_beta ~ normal(0, 0.5);
  for (dog in 1 : Ndogs) {
    for (trial in 2 : Ntrials) {
      y[dog, trial] ~ bernoulli(exp(alpha * xa[dog, trial] + beta * xs[dog, trial]));
    }
  }
}
generated quantities {
  real A = exp(alpha);
  real B = exp(beta);
}
