// Degrees of freedom of a Student t from a thousand draws.
data {
  int<lower=0> N;
  array[N] real y;
}
parameters {
  real<lower=2, upper=100> d;
}
model {
  y ~ student_t(d, 0, 1);
}
