// Relative risks of forty-nine areas, partly spatial, partly free (BYM2).
data {
  array[84] int first;
  array[84] int second;
  vector[49] expected;
  real scale;
  vector[49] z;
  array[49] int y;
}
parameters {
  real a;
  real b;
  real<lower=0> s;
  real<lower=0, upper=1> rho;
  vector[49] free;
  vector[49] field;
}
model {
  a ~ normal(0, 1);
  b ~ normal(0, 1);
  s ~ normal(0, 1);
  rho ~ beta(1, 1);
  free ~ normal(0, 1);
  target += -0.5 * dot_self(field[first] - field[second]);
  sum(field) ~ normal(0, 0.049);
  y ~ poisson_log(log(expected) + a + b * z + s * (sqrt(rho / scale) * field + sqrt(1 - rho) * free));
}
