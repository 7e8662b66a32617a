// A product is seen, its factors are not: a cross of two ridges.
parameters {
  vector[2] x;
}
model {
  x ~ normal(0, 1);
  0 ~ normal(x[1] * x[2], 0.1);
}
