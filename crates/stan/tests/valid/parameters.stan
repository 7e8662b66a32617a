parameters {
  real sd;
}
// ----
parameters {
  real normal;
}
// ----
parameters {
  real normal_lpdf;
}
// ----
parameters {
  real a;
}
generated quantities {
  vector[3] v = linspaced_vector(3, 0, a);
  real b = a;
  v = linspaced_vector(3, 0, b);
}
// ----
parameters {
  tuple(real, vector[2]) t;
}
// ----
parameters {
  vector[2] u;
}
transformed parameters {
  vector[3] s = simplex_jacobian(u);
  real t = lower_bound_jacobian(u[1], 0);
}
