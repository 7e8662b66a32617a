// A hundred Student t with five degrees of freedom: the tails multiply.
parameters {
  vector[100] x;
}
model {
  x ~ student_t(5, 0, 1);
}
