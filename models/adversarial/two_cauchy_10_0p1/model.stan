// Two observations 10 apart under a Cauchy location of scale 0.1.
parameters {
  real mu;
}
model {
  [-5.0, 5.0] ~ cauchy(mu, 0.1);
}
