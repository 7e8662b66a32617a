// Four ordered outcomes of a hundred rows.
data {
  vector[100] z;
  array[100] int y;
}
parameters {
  real b;
  ordered[3] c;
}
model {
  b ~ normal(0, 2);
  c ~ normal(0, 3);
  y ~ ordered_logistic(b * z, c);
}
