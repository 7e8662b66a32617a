// Weekly cases of a disease whose logarithmic rate is an autoregression, eighty weeks.
data {
  array[80] int y;
}
parameters {
  real mu;
  real<lower=-1, upper=1> phi;
  real<lower=0> q;
  vector[80] x;
}
model {
  mu ~ normal(0, 2);
  phi ~ normal(0.5, 0.5);
  q ~ gamma(3, 6);
  x[1] ~ normal(mu, q / sqrt(1 - square(phi)));
  x[2 : 80] ~ normal(mu + phi * (x[1 : 79] - mu), q);
  y ~ poisson_log(x);
}
