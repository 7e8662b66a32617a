// 100 independent standard normals.
parameters {
  vector[100] x;
}
model {
  x ~ normal(0, 1);
}
