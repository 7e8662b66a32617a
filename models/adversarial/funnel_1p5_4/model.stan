// Neal's funnel with 4 small coordinates, its scale's log has sd 1.5.
parameters {
  real y;
  vector[4] x;
}
model {
  y ~ normal(0, 1.5);
  x ~ normal(0, exp(y / 2));
}
