// Two normals with correlation 0.9999.
parameters {
  vector[2] x;
}
model {
  x ~ multi_normal([0, 0]', [[1, 0.9999], [0.9999, 1]]);
}
