// Tails of a Student t with 5 degrees of freedom.
parameters {
  real x;
}
model {
  x ~ student_t(5, 0, 1);
}
