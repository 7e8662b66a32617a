// A positive number without a prior.
parameters {
  real<lower=0> x;
}
model {
}
