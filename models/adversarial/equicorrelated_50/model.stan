// Fifty normals with all correlations 0.9.
transformed data {
  matrix[50, 50] S = add_diag(rep_matrix(0.9, 50, 50), 0.1);
  matrix[50, 50] L = cholesky_decompose(S);
}
parameters {
  vector[50] x;
}
model {
  x ~ multi_normal_cholesky(rep_vector(0, 50), L);
}
