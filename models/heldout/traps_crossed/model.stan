// Insects in twelve traps on fourteen nights, with effects of traps, nights and every count.
data {
  array[168] int trap;
  array[168] int night;
  array[168] int y;
}
parameters {
  real mu;
  vector[12] a;
  vector[14] b;
  vector[168] e;
  vector<lower=0>[3] tau;
}
model {
  mu ~ normal(0, 2);
  a ~ normal(0, 1);
  b ~ normal(0, 1);
  e ~ normal(0, 1);
  tau ~ normal(0, 1);
  y ~ poisson_log(mu + tau[1] * a[trap] + tau[2] * b[night] + tau[3] * e);
}
