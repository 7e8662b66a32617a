// Neal's funnel with 20 small coordinates, its scale's log has sd 0.5.
parameters {
  real y;
  vector[20] x;
}
model {
  y ~ normal(0, 0.5);
  x ~ normal(0, exp(y / 2));
}
