// 10 independent standard normals.
parameters {
  vector[10] x;
}
model {
  x ~ normal(0, 1);
}
