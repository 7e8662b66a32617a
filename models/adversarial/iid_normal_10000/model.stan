// 10000 independent standard normals.
parameters {
  vector[10000] x;
}
model {
  x ~ normal(0, 1);
}
