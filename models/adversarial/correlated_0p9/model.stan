// Two normals with correlation 0.9.
parameters {
  vector[2] x;
}
model {
  x ~ multi_normal([0, 0]', [[1, 0.9], [0.9, 1]]);
}
