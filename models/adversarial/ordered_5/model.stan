// Five ordered standard normals.
parameters {
  ordered[5] x;
}
model {
  x ~ normal(0, 1);
}
