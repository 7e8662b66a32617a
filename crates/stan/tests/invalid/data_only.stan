parameters {
  real a;
}
transformed parameters {
  vector[3] v = linspaced_vector(3, 0, a);
  //^ error[data-only]: the function `linspaced_vector` does not take (int, int, real)
}
// ----
functions {
  real f(data real x) {
    return 1;
  }
}
parameters {
  real z;
}
model {
  real a = f(z);
  //^ error[data-only]: the function `f` does not take (real)
  real b = 1;
  a = f(b);
  //^ error[data-only]: the function `f` does not take (real)
  a = f(1);
}
// ----
functions {
  real f(data real x, real y) {
    return x;
  }
  real g(real x) {
    return f(x, 1);
    //^ error[data-only]: the function `f` does not take (real, int)
  }
}
// ----
functions {
  real f(vector x, data vector y) {
    return 1;
  }
}
data {
  vector[2] d;
}
parameters {
  vector[2] p;
}
model {
  real a = f(p, d);
  a = f(d, d * 2);
  vector[2] l = d;
  a = f(d, l);
  //^ error[data-only]: the function `f` does not take (vector, vector)
}
// ----
functions {
  real f(data tuple(real, int) y) {
    return 1;
  }
}
data {
  real d;
}
parameters {
  real p;
}
model {
  real a = f((d, 1));
  a = f((p, 1));
  //^ error[data-only]: the function `f` does not take (tuple(real, int))
}
