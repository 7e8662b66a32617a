// A Student t whose variance barely exists.
parameters {
  real x;
}
model {
  x ~ student_t(2.5, 0, 1);
}
