// No event in ten counts under a flat prior on the log rate.
transformed data {
  array[10] int y = rep_array(0, 10);
}
parameters {
  real a;
}
model {
  y ~ poisson_log(a);
}
