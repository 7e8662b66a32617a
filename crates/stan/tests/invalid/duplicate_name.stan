functions {
  real sin(real x) {
  //^ error[duplicate-name]: the library already has `sin(real) => real`
    return x;
  }
}
// ----
functions {
  real f(int x) {
    return 1;
  }
  real f(int y) {
  //^ error[duplicate-name]: this function is already defined
    return 2;
  }
}
// ----
transformed data {
  real a = 1;
  real a = 2;
  //^ error[duplicate-name]: the name `a` is already in use
}
// ----
transformed data {
  {
    real a = 1;
  }
  real a = 2;
  {
    real a = 2;
    //^ error[duplicate-name]: the name `a` is already in use
  }
}
// ----
transformed data {
  for (i in 1:2) {
    real i;
    //^ error[duplicate-name]: the name `i` is already in use
  }
}
// ----
transformed data {
  real i;
  for (i in 1:2) {
  //^ error[duplicate-name]: the name `i` is already in use
  }
}
// ----
functions {
  real f(real x, real x) {
  //^ error[duplicate-name]: the name `x` is already in use
    return 1;
  }
}
// ----
functions {
  real reduce_sum(real x) {
  //^ error[duplicate-name]: `reduce_sum` is a function of the library that cannot be overloaded
    return 1;
  }
}
// ----
functions {
  void f(int i) {
    for (i in 1:2) {
    //^ error[duplicate-name]: the name `i` is already in use
    }
  }
}
// ----
functions {
  void f(int i) {
    real i;
    //^ error[duplicate-name]: the name `i` is already in use
  }
}
// ----
functions {
  int f(int x) {
    return 1;
  }
  real f(int x) {
  //^ error[duplicate-name]: overloads must differ in the types of their arguments
    return 1;
  }
}
// ----
functions {
  real normal_lpdf(real x, real y, vector z) {
  //^ error[duplicate-name]: the library already has `normal_lpdf(real, real, vector) => real`
    return 1;
  }
}
// ----
model {
  int sin = 1;
  {
    int sin = 2;
    //^ error[duplicate-name]: the name `sin` is already in use
  }
}
// ----
model {
  for (i in 1:2) {
    for (i in 1:3) {
    //^ error[duplicate-name]: the name `i` is already in use
    }
  }
}
// ----
data {
  int a;
}
model {
  int a;
  //^ error[duplicate-name]: the name `a` is already in use
}
