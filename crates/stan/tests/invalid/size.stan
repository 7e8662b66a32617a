parameters {
  real x;
  vector[x] y;
  //^ error[size]: the size of a variable cannot depend on `x`
}
// ----
transformed data {
  int N = 3;
  vector[poisson_rng(3)] x;
  //^ error[size]: the size of a variable cannot be random, as with `poisson_rng`
}
// ----
parameters {
  vector[poisson_rng(3)] x;
  //^ error[size]: the size of a variable cannot be random, as with `poisson_rng`
}
// ----
data {
  int N;
  array[N, N] int<lower=N> x;
  array[] int y;
  //^ error[size]: the sizes of the array are missing
}
// ----
parameters {
  real a;
}
transformed parameters {
  vector[int_step(a)] v;
  //^ error[size]: the size of a variable cannot depend on `a`
}
// ----
parameters {
  real a;
}
transformed parameters {
  vector[2] w;
  vector[size(w)] v;
  //^ error[size]: the size of a variable cannot depend on `w`
}
// ----
generated quantities {
  int K = 2;
  vector[K] z;
  //^ error[size]: the size of a variable cannot depend on `K`
}
// ----
generated quantities {
  vector[poisson_rng(3)] z;
  //^ error[size]: the size of a variable cannot be random, as with `poisson_rng`
}
// ----
data {
  matrix[2] x;
  //^ error[size]: this type needs 2 sizes, found 1
}
// ----
data {
  vector[2, 3] x;
  //^ error[size]: this type needs 1 size, found 2
}
