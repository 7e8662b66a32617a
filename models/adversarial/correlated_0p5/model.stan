// Two normals with correlation 0.5.
parameters {
  vector[2] x;
}
model {
  x ~ multi_normal([0, 0]', [[1, 0.5], [0.5, 1]]);
}
