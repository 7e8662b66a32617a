// Two hundred normals with correlation 0.5 each.
parameters {
  vector[200] x;
}
model {
  target += square(sum(x)) / 201 - dot_self(x);
}
