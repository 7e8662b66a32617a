// Tails of a Student t with 10 degrees of freedom.
parameters {
  real x;
}
model {
  x ~ student_t(10, 0, 1);
}
