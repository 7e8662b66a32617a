// An LKJ(1.0) correlation matrix of 3 variables.
parameters {
  corr_matrix[3] R;
}
model {
  R ~ lkj_corr(1.0);
}
