// Ten Student t with three degrees of freedom.
parameters {
  vector[10] x;
}
model {
  x ~ student_t(3, 0, 1);
}
