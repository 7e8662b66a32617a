// Pound-dollar daily returns: log variance follows an AR(1), non-centred.
data {
  int<lower=0> T;
  vector[T] y;  // returns in percent
}
parameters {
  real level;
  real<lower=-1, upper=1> persistence;
  real<lower=0> volatility;
  vector[T] shock;
}
transformed parameters {
  vector[T] log_var;
  {
    real deviation = volatility * shock[1] / sqrt(1 - square(persistence));
    log_var[1] = level + deviation;
    for (t in 2 : T) {
      deviation = persistence * deviation + volatility * shock[t];
      log_var[t] = level + deviation;
    }
  }
}
model {
  level ~ cauchy(0, 10);
  persistence ~ uniform(-1, 1);
  volatility ~ cauchy(0, 5);
  shock ~ std_normal();
  y ~ normal(0, exp(0.5 * log_var));
}
generated quantities {
  vector[T] y_rep;
  for (t in 1 : T) {
    y_rep[t] = normal_rng(0, exp(0.5 * log_var[t]));
  }
}
