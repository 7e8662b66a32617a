transformed parameters {
  target += 1;
  //^ error[wrong-block]: the log density can only be used in the model block and in functions ending in _lp
}
// ----
generated quantities {
  target += 1;
  //^ error[wrong-block]: the log density can only be used in the model block and in functions ending in _lp
}
// ----
generated quantities {
  real x = target();
  //^ error[wrong-block]: the log density can only be used in the model block and in functions ending in _lp
}
// ----
model {
  jacobian += 1;
  //^ error[wrong-block]: Jacobian adjustments can only be made in transformed parameters and in functions ending in _jacobian
}
// ----
model {
  real x = normal_rng(0,1);
  //^ error[wrong-block]: `normal_rng` draws random numbers, which is not allowed here
}
// ----
functions {
  void f_lp(real x) {
    target += x;
  }
}
transformed data {
  f_lp(1);
  //^ error[wrong-block]: the log density can only be used in the model block and in functions ending in _lp
}
// ----
functions {
  void f_lp(real x) {
    target += x;
    jacobian += 1;
    //^ error[wrong-block]: Jacobian adjustments can only be made in transformed parameters and in functions ending in _jacobian
  }
}
// ----
functions {
  void f_jacobian(real x) {
    jacobian += x;
  }
}
model {
  f_jacobian(1);
  //^ error[wrong-block]: Jacobian adjustments can only be made in transformed parameters and in functions ending in _jacobian
}
// ----
functions {
  void f_jacobian(real x) {
    target += x;
    //^ error[wrong-block]: the log density can only be used in the model block and in functions ending in _lp
  }
}
// ----
functions {
  real f(real x) {
    target += x;
    //^ error[wrong-block]: the log density can only be used in the model block and in functions ending in _lp
    return 1;
  }
}
// ----
functions {
  real f(real x) {
    return normal_rng(0,1);
    //^ error[wrong-block]: `normal_rng` draws random numbers, which is not allowed here
  }
}
// ----
parameters {
  int x;
  //^ error[wrong-block]: parameters cannot be integers
}
// ----
transformed parameters {
  int x;
  //^ error[wrong-block]: transformed parameters cannot be integers
}
// ----
transformed data {
  real x = normal_lupdf(1 | 0, 1);
  //^ error[wrong-block]: `normal_lupdf` may drop constants, so only code that computes the log density can use it
}
// ----
generated quantities {
  real x = normal_lupdf(1 | 0, 1);
  //^ error[wrong-block]: `normal_lupdf` may drop constants, so only code that computes the log density can use it
}
// ----
functions {
  real f(real x) {
    return normal_lupdf(x | 0, 1);
    //^ error[wrong-block]: `normal_lupdf` may drop constants, so only code that computes the log density can use it
  }
}
// ----
functions {
  real f_lp(real x) {
    x ~ normal(0,1);
    return normal_lupdf(x | 0, 1);
    //^ error[wrong-block]: `normal_lupdf` may drop constants, so only code that computes the log density can use it
  }
}
// ----
functions {
  void f(real x) {
    x ~ normal(0,1);
    //^ error[wrong-block]: the log density can only be used in the model block and in functions ending in _lp
  }
}
// ----
data {
  real x = 1;
  //^ error[wrong-block]: variables of the `data` block cannot be given a value
}
// ----
parameters {
  real x = 1;
  //^ error[wrong-block]: variables of the `parameters` block cannot be given a value
}
// ----
parameters {
  real x;
  x = 1;
  //^ error[wrong-block]: the `parameters` block can have only declarations
}
// ----
data {
  real<lower=1> x, y = 1;
  //^ error[wrong-block]: variables of the `data` block cannot be given a value
  real a, b;
}
// ----
functions {
  real f_lp(real x) {
    return 1;
  }
}
transformed parameters {
  real y = f_lp(1);
  vector[2] z;
}
generated quantities {
  real q = f_lp(1);
  //^ error[wrong-block]: the log density can only be used in the model block and in functions ending in _lp
}
// ----
data {
  vector[2] x = [1,2]';
  //^ error[wrong-block]: variables of the `data` block cannot be given a value
}
// ----
functions {
  real f_rng() {
    return normal_rng(0,1);
  }
}
transformed parameters {
  real x = f_rng();
  //^ error[wrong-block]: `f_rng` draws random numbers, which is not allowed here
}
// ----
parameters {
  complex z;
  complex_vector[2] zz;
  tuple(int, real) t;
  //^ error[wrong-block]: parameters cannot be integers
}
// ----
transformed parameters {
  tuple(int, real) t;
  //^ error[wrong-block]: transformed parameters cannot be integers
}
// ----
transformed parameters {
  array[2] int t;
  //^ error[wrong-block]: transformed parameters cannot be integers
}
// ----
parameters {
  array[2] int x;
  //^ error[wrong-block]: parameters cannot be integers
}
// ----
functions {
  void foo_rng(real x) {
    print(normal_rng(0,1));
  }
}
model {
  foo_rng(1);
  //^ error[wrong-block]: `foo_rng` draws random numbers, which is not allowed here
}
// ----
parameters {
  vector[2] u;
}
model {
  vector[3] s = simplex_jacobian(u);
  //^ error[wrong-block]: Jacobian adjustments can only be made in transformed parameters and in functions ending in _jacobian
  s = simplex_constrain(u);
}
