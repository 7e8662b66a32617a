// A simplex of 10 with a Dirichlet(0.1).
parameters {
  simplex[10] x;
}
model {
  x ~ dirichlet(rep_vector(0.1, 10));
}
