// Regression of sixty rows on forty columns, three of which matter, with a regularised horseshoe.
data {
  matrix[60, 40] x;
  vector[60] y;
}
parameters {
  real a;
  real<lower=0> s;
  vector[40] raw;
  vector<lower=0>[40] local;
  real<lower=0> tau;
  real<lower=0> slab;
}
model {
  vector[40] width = sqrt(slab * square(local) ./ (slab + square(tau * local)));
  a ~ normal(0, 3);
  s ~ exponential(1);
  raw ~ normal(0, 1);
  local ~ cauchy(0, 1);
  tau ~ normal(0, 0.2);
  slab ~ inv_gamma(4, 8);
  y ~ normal(a + x * (tau * width .* raw), s);
}
