model {
  real<lower=0> x;
  //^ error[constraint]: local variables cannot have constraints
}
// ----
data {
  int<lower=0> N;
  array[N] real x;
  vector<lower=x>[N] y;
  //^ error[constraint]: the lower bound must be real or vector, found array[] real
  real<lower=0, upper=1> z;
  real<offset=1, multiplier=2> w;
  real<multiplier=2> w2;
  real<lower=0,offset=1> q;
  //^ error[constraint]: bounds and affine transforms cannot be combined
}
// ----
data {
  int N;
  vector<lower=[1,2]'>[N] y;
  real<lower=[1]> a;
  //^ error[constraint]: the lower bound must be real, found row_vector
}
// ----
data {
  complex<lower=0> z;
  //^ error[constraint]: this type has no bounds, offset or multiplier
}
// ----
data {
  int<lower=1.5> N;
  //^ error[constraint]: the lower bound must be int, found real
}
// ----
data {
  int<offset=1> N;
  //^ error[constraint]: integers have no offset or multiplier
}
// ----
data {
  vector<lower=0>[2] x;
  row_vector<offset=1>[2] y;
  matrix<multiplier=2>[2,3] z;
  array[2] vector<lower=[1,2]'>[2] q;
  //^ error[constraint]: the lower bound must be real or array[] vector, found vector
  array[2] real<lower={1,2}> r;
  //^ error[constraint]: the lower bound must be real or array[] real, found array[] int
  matrix<lower=[1,2]>[2,2] s;
  //^ error[constraint]: the lower bound must be real or matrix, found row_vector
}
// ----
data {
  array[2] vector<lower={[1,2]',[1,2]'}>[2] q;
  matrix<lower=[[1,2],[1,2]]>[2,2] s;
  int<upper=3> k;
  row_vector<lower=[1,2]>[2] rr;
  row_vector<lower=[1,2]'>[2] r2;
  //^ error[constraint]: the lower bound must be real or row_vector, found vector
}
// ----
data {
  complex_vector<offset=1>[2] q;
  //^ error[constraint]: this type has no bounds, offset or multiplier
}
// ----
data {
  ordered<lower=0>[3] x;
  //^ error[constraint]: this type has no bounds, offset or multiplier
}
// ----
data {
  simplex<lower=0>[3] x;
  //^ error[constraint]: this type has no bounds, offset or multiplier
}
// ----
data {
  real<lower=0, lower=1> x;
  //^ error[constraint]: `lower` appears twice
}
// ----
data {
  tuple(real, int)<lower=0> x;
  //^ error[constraint]: a tuple cannot have bounds
}
// ----
functions {
  real f(real<lower=0> x) {
  //^ error[constraint]: types of functions cannot have constraints
    return 1;
  }
}
