// A direction in three dimensions, uniform on the sphere.
parameters {
  unit_vector[3] x;
}
model {
}
