// Neal's funnel with 1 small coordinates, its scale's log has sd 1.
parameters {
  real y;
  vector[1] x;
}
model {
  y ~ normal(0, 1);
  x ~ normal(0, exp(y / 2));
}
