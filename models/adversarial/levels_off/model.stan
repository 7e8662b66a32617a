// A density that rises to a level and stays there.
parameters {
  real<lower=0> x;
}
model {
  target += -1 / x;
}
