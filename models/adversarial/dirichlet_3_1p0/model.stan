// A simplex of 3 with a Dirichlet(1.0).
parameters {
  simplex[3] x;
}
model {
  x ~ dirichlet(rep_vector(1.0, 3));
}
