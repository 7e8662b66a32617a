model {
  vector[2] v;
  v[1,2] = 3;
  //^ error[indexing]: too many indices: a value of type vector takes 1, found 2
  v[1][1] = 2;
  //^ error[indexing]: a value of type real cannot be indexed
  real x = v[1.5];
  //^ error[indexing]: an index must be int or array[] int, found real
  x = v[{1}];
  //^ error[type-mismatch]: a value of type vector cannot be assigned to a variable of type real
  x[1] = 2;
  //^ error[indexing]: a value of type real cannot be indexed
}
// ----
transformed data {
  int x = 3;
  int y = x.1;
  //^ error[indexing]: a value of type int has no components
}
// ----
transformed data {
  tuple(array[2] real, int) t;
  t.1[{1,2}] = {1,2};
  array[2] tuple(real,real) u;
  real x = u[1:2].1;
  //^ error[indexing]: a value of type array[] tuple(real, real) has no components
}
// ----
transformed data {
  array[2] tuple(real,real) u;
  array[2] real x = u.1;
  //^ error[indexing]: a value of type array[] tuple(real, real) has no components
}
// ----
transformed data {
  array[2] tuple(real,real) u;
  u[1:2].1 = 2;
  //^ error[indexing]: a value of type array[] tuple(real, real) has no components
}
// ----
transformed data {
  real x = {1,2,3}[2] + [1,2][1] + (1, 2).2;
  x = 5[1];
  //^ error[indexing]: a value of type int cannot be indexed
}
// ----
transformed data {
  tuple(real, int) t = (1.0, 2);
  real x = t.3;
  //^ error[indexing]: a value of type tuple(real, int) has no component 3
}
// ----
transformed data {
  array[3] real a;
  real x = a[1, 2];
  //^ error[indexing]: too many indices: a value of type array[] real takes 1, found 2
  x = a[1.5];
  //^ error[indexing]: an index must be int or array[] int, found real
  x = a["a"];
  //^ error[syntax]: a string is not a value
}
// ----
transformed data {
  real x = 1;
  real y = x[1];
  //^ error[indexing]: a value of type real cannot be indexed
  y = x.1;
  //^ error[indexing]: a value of type real has no components
}
