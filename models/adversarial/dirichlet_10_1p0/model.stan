// A simplex of 10 with a Dirichlet(1.0).
parameters {
  simplex[10] x;
}
model {
  x ~ dirichlet(rep_vector(1.0, 10));
}
