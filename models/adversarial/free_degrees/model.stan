// A Student t whose degrees of freedom have no prior.
transformed data {
  vector[5] y = [-1, -0.5, 0, 0.5, 1]';
}
parameters {
  real<lower=1> nu;
}
model {
  y ~ student_t(nu, 0, 1);
}
