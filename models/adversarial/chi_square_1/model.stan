// A chi-square with one degree: a pole at zero.
parameters {
  real<lower=0> x;
}
model {
  x ~ chi_square(1);
}
