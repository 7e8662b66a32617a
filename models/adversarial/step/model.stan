// A step: the right half of an interval has seven tenths of the mass.
parameters {
  real<lower=-1, upper=1> x;
}
model {
  target += x < 0 ? log(0.3) : log(0.7);
}
