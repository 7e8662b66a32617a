// 1000 independent standard normals.
parameters {
  vector[1000] x;
}
model {
  x ~ normal(0, 1);
}
