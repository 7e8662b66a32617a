// Switching to a safer well in Bangladesh: probit on distance, arsenic and
// schooling, every fourth household.
data {
  int<lower=0> N;
  array[N] int<lower=0, upper=1> switched;
  vector[N] dist;
  vector[N] arsenic;
  vector[N] educ;
}
transformed data {
  matrix[N, 4] x;
  x[ : , 1] = dist / 100;
  x[ : , 2] = log(arsenic);
  x[ : , 3] = educ / 4;
  x[ : , 4] = x[ : , 1] .* x[ : , 2];
}
parameters {
  real alpha;
  vector[4] beta;
}
model {
  alpha ~ normal(0, 5);
  beta ~ normal(0, 2);
  vector[N] eta = alpha + x * beta;
  switched ~ bernoulli(Phi(eta));
}
