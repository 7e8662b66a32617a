// Neal's funnel with 2 small coordinates, its scale's log has sd 2.5.
parameters {
  real y;
  vector[2] x;
}
model {
  y ~ normal(0, 2.5);
  x ~ normal(0, exp(y / 2));
}
