// Neal's funnel with 9 small coordinates, its scale's log has sd 3.
parameters {
  real y;
  vector[9] x;
}
model {
  y ~ normal(0, 3);
  x ~ normal(0, exp(y / 2));
}
