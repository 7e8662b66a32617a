// An LKJ(2.0) correlation matrix of 5 variables.
parameters {
  corr_matrix[5] R;
}
model {
  R ~ lkj_corr(2.0);
}
