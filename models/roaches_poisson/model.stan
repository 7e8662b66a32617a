// Roaches in flats, plain Poisson regression, one observation at a time.
data {
  int<lower=1> N;
  array[N] int<lower=0> y;
  array[N] real<lower=0> roach1;
  array[N] int<lower=0, upper=1> treatment;
  array[N] int<lower=0, upper=1> senior;
  array[N] real<lower=0> exposure2;
}
parameters {
  array[4] real beta;
}
model {
  for (k in 1 : 4)
    beta[k] ~ normal(0, 5);
  for (n in 1 : N) {
    real lambda = exposure2[n] * exp(beta[1] + beta[2] * roach1[n] / 100
                                     + (treatment[n] == 1 ? beta[3] : 0)
                                     + (senior[n] == 1 ? beta[4] : 0));
    y[n] ~ poisson(lambda);
  }
}
