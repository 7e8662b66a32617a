// A Gumbel distribution.
parameters {
  real x;
}
model {
  x ~ gumbel(0, 1);
}
