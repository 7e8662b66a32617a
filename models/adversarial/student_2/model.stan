// A Student t without a variance.
parameters {
  real x;
}
model {
  x ~ student_t(2, 0, 1);
}
