// A half Student t.
parameters {
  real<lower=0> x;
}
model {
  x ~ student_t(5, 0, 1);
}
