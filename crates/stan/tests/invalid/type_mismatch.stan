transformed data {
  if (1.5) ;
  //^ error[type-mismatch]: a condition must be of type int, found real
  while (0.5) ;
  //^ error[type-mismatch]: a condition must be of type int, found real
}
// ----
transformed data {
  real a = 1.5 ? 1 : 2.0;
  //^ error[type-mismatch]: the condition must be of type int, found real
}
// ----
transformed data {
  int x = 1.5;
  //^ error[type-mismatch]: a value of type real cannot be assigned to a variable of type int
}
// ----
transformed data {
  for (i in 1:2.5) ;
  //^ error[type-mismatch]: the bound of a loop must be of type int, found real
}
// ----
transformed data {
  vector[3] v = {1,2,3};
  //^ error[type-mismatch]: a value of type array[] int cannot be assigned to a variable of type vector
}
// ----
transformed data {
  vector[2] v;
  matrix[2,2] m = [v,v];
  //^ error[type-mismatch]: `[…]` needs scalars, or row vectors to make a matrix; found vector
}
// ----
transformed data {
  vector[2] v;
  row_vector[2] r;
  array[2] vector[2] m = {v,r};
  //^ error[type-mismatch]: the elements of an array must have one type, found vector and row_vector
}
// ----
transformed data {
  vector[1.5] x;
  //^ error[type-mismatch]: a size must be of type int, found real
}
// ----
transformed data {
  tuple(int,int) t = (1,);
  //^ error[type-mismatch]: a value of type tuple(int) cannot be assigned to a variable of type tuple(int, int)
}
// ----
functions {
  void f() {
  }
}
transformed data {
  real a = f();
  //^ error[type-mismatch]: `f` returns no value, so it cannot be used as one
}
// ----
transformed data {
  sin(1);
  //^ error[type-mismatch]: the program does not use the value of `sin`
}
// ----
transformed data {
  array[2] int xs;
  for (x in xs) {
    print(x);
  }
  vector[2] v;
  for (x in v) print(x);
  matrix[2,2] m;
  for (x in m) print(x);
  for (x in 1.0) ;
  //^ error[type-mismatch]: a loop can iterate over arrays, and vectors and matrices of reals, but not real
}
// ----
transformed data {
  int a = 2 ^ 2;
  //^ error[type-mismatch]: a value of type real cannot be assigned to a variable of type int
}
// ----
model {
  real x = integrate_ode(1);
  //^ error[type-mismatch]: this argument of `integrate_ode` must be the name of a function
  x = multiply_log(1,2);
  //^ error[removed-syntax]: `multiply_log` is no longer part of Stan
  x = binomial_coefficient_log(1,2);
  //^ error[removed-syntax]: `binomial_coefficient_log` is no longer part of Stan
  x = fabs(1);
  //^ error[removed-syntax]: `fabs` is no longer part of Stan
  x = cov_exp_quad(1);
  //^ error[removed-syntax]: `cov_exp_quad` is no longer part of Stan
  x = normal_cdf_log(1,0,1);
  //^ error[removed-syntax]: `normal_cdf_log` is no longer part of Stan
  x = normal_ccdf_log(1,0,1);
  //^ error[removed-syntax]: `normal_ccdf_log` is no longer part of Stan
}
// ----
transformed data {
  real a = normal_lpdf;
  //^ error[type-mismatch]: `normal_lpdf` is a function, not a value
}
// ----
transformed data {
  real a = sin;
  //^ error[type-mismatch]: `sin` is a function, not a value
}
// ----
functions {
  vector f(vector a) {
    return a;
  }
}
model {
  vector[1] y = solve_newton(f, [1]');
  y = f(f);
  //^ error[type-mismatch]: `f` is a function, not a value
}
// ----
functions {
  real f(real x) {
    return 1;
  }
}
model {
  real y = f(sin);
  //^ error[type-mismatch]: `sin` is a function, not a value
}
// ----
model {
  real x;
  {
    x = 1;
  }
  if (x) {
  //^ error[type-mismatch]: a condition must be of type int, found real
  }
  else x = 2;
  if (x > 1) x = 1;
  else if (x < 0) {
    x = 2;
  }
  else ;
}
// ----
functions {
  real f() {
    return 1;
  }
}
parameters {
  real f;
}
model {
  real x = f();
  //^ error[type-mismatch]: `f` is a variable here, not a function
}
// ----
transformed data {
  vector[2] v = 1 ? [1,2]' : [1,2];
  //^ error[type-mismatch]: both branches of `?:` must have the same type
}
// ----
transformed data {
  real x = 1 ? (2) : {3};
  //^ error[type-mismatch]: both branches of `?:` must have the same type
}
// ----
transformed data {
  int x = 1e2;
  //^ error[type-mismatch]: a value of type real cannot be assigned to a variable of type int
  int y = 007;
}
// ----
transformed data {
  array[2] real x;
  real y = x[];
  //^ error[type-mismatch]: a value of type array[] real cannot be assigned to a variable of type real
  array[2] real z = x[];
  z = x[:];
  z = x[1:];
  z = x[:2];
  z = x[,];
  //^ error[indexing]: too many indices: a value of type array[] real takes 1, found 2
}
// ----
transformed data {
  matrix[2,2] m = [[1,2],[3,4]][,1];
  //^ error[type-mismatch]: a value of type vector cannot be assigned to a variable of type matrix
}
// ----
transformed data {
  real x = reduce_sum;
  //^ error[type-mismatch]: `reduce_sum` is a function, not a value
  real ode_rk45 = 1;
}
// ----
functions {
  real foo(real x) {
    return 1;
  }
}
model {
  int foo = 1;
  real y = foo(1.0);
  //^ error[type-mismatch]: `foo` is a variable here, not a function
}
// ----
transformed data {
  int n = 3;
  for (i in n) {
  //^ error[type-mismatch]: a loop can iterate over arrays, and vectors and matrices of reals, but not int
  }
}
// ----
transformed data {
  vector[3] v = [1, 2, 3];
  //^ error[type-mismatch]: a value of type row_vector cannot be assigned to a variable of type vector
  row_vector[3] r = [1, 2, 3]';
  //^ error[type-mismatch]: a value of type vector cannot be assigned to a variable of type row_vector
  matrix[1, 3] m = {[1, 2, 3]};
  //^ error[type-mismatch]: a value of type array[] row_vector cannot be assigned to a variable of type matrix
  array[3] real a = [1, 2, 3];
  //^ error[type-mismatch]: a value of type row_vector cannot be assigned to a variable of type array[] real
}
