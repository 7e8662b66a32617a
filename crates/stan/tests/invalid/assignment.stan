transformed data {
  int x = 1;
  x += 1.5;
  //^ error[assignment]: `+=` cannot be applied to int and real
}
// ----
data {
  real x;
}
transformed data {
  x = 1;
  //^ error[assignment]: `x` is declared in the `data` block and cannot be assigned to elsewhere
}
// ----
transformed data {
  for (i in 1:2) i = 1;
  //^ error[assignment]: `i` is the variable of a loop and cannot be assigned to
}
// ----
functions {
  void f(real x) {
    x = 1;
    //^ error[assignment]: `x` is an argument of the function and cannot be assigned to
  }
}
// ----
transformed data {
  real x;
}
transformed parameters {
  x = 1;
  //^ error[assignment]: `x` is declared in the `transformed data` block and cannot be assigned to elsewhere
}
// ----
transformed data {
  array[2,3] real x;
  x[1,2] = 1;
  x[1][2] = 1;
  x[1] = {1,2,3};
  x[,1] = {1,2};
  x[{1,2},1] = {1,2};
  x[1:2][1] = {1,2,3};
  //^ error[assignment]: on the left side, no index can follow a range or several indices
}
// ----
transformed data {
  real a;
  int b;
  (a, b) = (1, 2);
  (a, a) = (1,2);
  //^ error[assignment]: `a` is assigned twice
}
// ----
transformed data {
  array[2] int a = {1,2};
  a[1:2] += 1;
  //^ error[assignment]: `+=` cannot be applied to array[] int and int
}
// ----
transformed data {
  array[2] int a = {1,2};
  a += a;
  //^ error[assignment]: `+=` cannot be applied to array[] int and array[] int
}
// ----
transformed data {
  vector[2] v;
  v[{1,2}] += 1;
  v[1:2] .*= v;
  v *= 2;
  row_vector[2] r;
  r *= [[1]];
  v /= 2;
  matrix[2,2] m;
  m *= m;
  r /= m;
  //^ error[assignment]: `/=` cannot be applied to row_vector and matrix
}
// ----
transformed data {
  array[2] real a;
  a[{1,2}][1] = 2;
  //^ error[assignment]: on the left side, no index can follow a range or several indices
}
// ----
model {
  real x = 1;
  (x) = 2;
  //^ error[assignment]: this cannot be assigned to
  x + 1 = 2;
  //^ error[assignment]: this cannot be assigned to
}
// ----
transformed data {
  vector[2] v;
  v += 1;
  v -= v;
  v *= 2;
  v /= 2;
  v .*= v;
  v ./= 2;
  v ./= v;
  v[1] += 2;
  v *= [[1,2],[3,4]];
  //^ error[assignment]: `*=` cannot be applied to vector and matrix
}
// ----
transformed data {
  real x;
  x .*= 2;
  //^ error[assignment]: `.*=` cannot be applied to real and int
  x ./= 2;
  //^ error[assignment]: `./=` cannot be applied to real and int
  int i;
  i .*= 2;
  //^ error[assignment]: `.*=` cannot be applied to int and int
}
// ----
transformed data {
  array[2] vector[2] a;
  a[1] += 1;
  a[1,2] += 1;
  a[1][2] *= 3;
  a += a;
  //^ error[assignment]: `+=` cannot be applied to array[] vector and array[] vector
}
// ----
model {
  target() += 1;
  //^ error[assignment]: this cannot be assigned to
}
// ----
transformed data {
  tuple(real, int) t;
  (t.1, t) = (1.0, (2.0, 3));
  //^ error[assignment]: `t` is assigned twice
}
