// A simplex of 100 with a Dirichlet(1.0).
parameters {
  simplex[100] x;
}
model {
  x ~ dirichlet(rep_vector(1.0, 100));
}
