// A random walk of which only the steps are known.
parameters {
  vector[10] x;
}
model {
  x[2 : 10] ~ normal(x[1 : 9], 1);
}
