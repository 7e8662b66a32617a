// Neal's funnel with 9 small coordinates, its scale's log has sd 2.
parameters {
  real y;
  vector[9] x;
}
model {
  y ~ normal(0, 2);
  x ~ normal(0, exp(y / 2));
}
