// Tails of a Student t with 3 degrees of freedom.
parameters {
  real x;
}
model {
  x ~ student_t(3, 0, 1);
}
