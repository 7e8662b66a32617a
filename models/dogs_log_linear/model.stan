// Avoidance learning of dogs, log-linear: each avoidance and shock multiplies
// the chance of a shock.
data {
  int<lower=0> Ndogs;
  int<lower=0> Ntrials;
  array[Ndogs, Ntrials] int<lower=0, upper=1> Y;  // 1 if the shock was avoided
}
parameters {
  real<lower=0, upper=1> keep_avoid;  // factor of each avoidance
  real<lower=0, upper=1> keep_shock;  // factor of each shock
}
model {
  real a = log(keep_avoid);
  real b = log(keep_shock);
  keep_avoid ~ beta(4, 1);
  keep_shock ~ beta(4, 1);
  for (dog in 1 : Ndogs) {
    int avoided = Y[dog, 1];
    for (trial in 2 : Ntrials) {
      real log_p = a * avoided + b * (trial - 1 - avoided);
      if (Y[dog, trial] == 0) {
        target += log_p;
      } else {
        target += log1m_exp(log_p);
      }
      avoided += Y[dog, trial];
    }
  }
}
