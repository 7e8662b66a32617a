// Tails of a Student t with 30 degrees of freedom.
parameters {
  real x;
}
model {
  x ~ student_t(30, 0, 1);
}
