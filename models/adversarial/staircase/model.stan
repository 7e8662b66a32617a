// A staircase of five steps down.
parameters {
  real<lower=0, upper=5> x;
}
model {
  target += log(5 - floor(x));
}
