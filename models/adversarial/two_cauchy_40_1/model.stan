// Two observations 40 apart under a Cauchy location of scale 1.
parameters {
  real mu;
}
model {
  [-20.0, 20.0] ~ cauchy(mu, 1);
}
