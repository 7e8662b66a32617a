// The location of six observations in two bunches far apart, with Cauchy errors of known scale: two modes.
data {
  vector[6] y;
}
parameters {
  real mu;
}
model {
  mu ~ normal(0, 10);
  y ~ cauchy(mu, 0.9);
}
