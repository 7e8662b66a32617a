transformed data {
  int a = 1.5 && 2;
  //^ error[no-matching-signature]: `&&` cannot be applied to real and int
  a = !1.5;
  //^ error[no-matching-signature]: `!` cannot be applied to real
}
// ----
model {
  1.5 ~ poisson(1);
  //^ error[no-matching-signature]: the distribution `poisson` does not take (int) for a variate of type real
}
// ----
model {
  1 ~ poisson(1) T[0.5,];
  //^ error[no-matching-signature]: the function `poisson_lcdf` does not take (real, real)
}
// ----
transformed data {
  array[1] int a = +{1};
  //^ error[no-matching-signature]: `+` cannot be applied to array[] int
}
// ----
transformed data {
  vector[1] v = !([1]');
  //^ error[no-matching-signature]: `!` cannot be applied to vector
}
// ----
transformed data {
  array[1] int a = {1}';
  //^ error[no-matching-signature]: a value of type array[] int cannot be transposed
  real b = 1';
  //^ error[no-matching-signature]: a value of type int cannot be transposed
}
// ----
transformed data {
  vector[2] a = [1,2]' == [1,2]';
  //^ error[no-matching-signature]: `==` cannot be applied to vector and vector
}
// ----
transformed data {
  int a = 1 == 1.5;
  a = 1i == 1;
  a = 1 < 2 < 3;
  a = 1i < 2;
  //^ error[no-matching-signature]: `<` cannot be applied to complex and int
}
// ----
transformed data {
  int a = 5 % 2;
  a = 5 %/% 2;
  a = 5.0 % 2;
  //^ error[no-matching-signature]: `%` cannot be applied to real and int
}
// ----
transformed data {
  real a = 5.0 %/% 2;
  //^ error[no-matching-signature]: `%/%` cannot be applied to real and int
}
// ----
transformed data {
  array[2] real a;
  a = a .* a;
  //^ error[no-matching-signature]: `.*` cannot be applied to array[] real and array[] real
}
// ----
functions {
  real f(array[] real x) {
    return 1;
  }
}
transformed data {
  real a = f(1);
  //^ error[no-matching-signature]: the function `f` does not take (int)
}
// ----
functions {
  real ps(array[] int s, int a, int b, real x) {
    return 1;
  }
}
model {
  target += reduce_sum(ps, {1,2}, 1, 1.0);
  target += reduce_sum(ps, {1,2}, 1, 1);
  target += reduce_sum(ps, {1,2}, 1);
  //^ error[no-matching-signature]: the arguments do not match the signature of `reduce_sum`
}
// ----
functions {
  vector f(real t, vector y, real a) {
    return y;
  }
}
parameters {
  real a;
}
model {
  array[2] vector[1] y = ode_rk45(f, [1]', 0, {1, 2}, a);
  y = ode_rk45_tol(f, [1]', 0, {1, 2}, 1e-3, 1e-3, 100, a);
  y = ode_rk45(f, [1]', 0, {1,2});
  //^ error[no-matching-signature]: the arguments do not match the signature of `ode_rk45`
}
// ----
functions {
  vector f(real t, vector y, data real a) {
    return y;
  }
}
parameters {
  real a;
}
model {
  array[2] vector[1] y = ode_rk45(f, [1]', 0, {1, 2}, a);
  //^ error[no-matching-signature]: the arguments do not match the signature of `ode_rk45`
}
// ----
model {
  array[2] int x = ode_rk45(sin, 1);
  //^ error[no-matching-signature]: the arguments do not match the signature of `ode_rk45`
}
// ----
transformed data {
  real x = 1;
  x = x';
  //^ error[no-matching-signature]: a value of type real cannot be transposed
}
// ----
transformed data {
  real x = 2 > 1 ? 3 : 4 > 3 ? 1 : 2;
  int y = !1 == 1;
  int q = -1 ^ 2 == 1;
  int w = !2 ^ 2 == 1;
  //^ error[no-matching-signature]: `!` cannot be applied to real
}
// ----
transformed data {
  matrix[2,2] m;
  vector[2] v;
  v = m * v;
  m = v * v';
  real x = v' * v;
  m = m';
  row_vector[2] r = v' * m;
  m = 2 * m;
  m = m * 2;
  m = m + m;
  m = m + 1;
  x = r * v;
  v = v * v;
  //^ error[no-matching-signature]: `*` cannot be applied to vector and vector
}
// ----
model {
  real x;
  x ~ normal(0,1);
  x ~ normal(0, {1, 2});
  [1, 2] ~ normal({1,2}, 1);
  x ~ normal([1,2]', 1);
  x ~ normal(0);
  //^ error[no-matching-signature]: the distribution `normal` does not take (int) for a variate of type real
}
