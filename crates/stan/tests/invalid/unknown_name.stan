model {
  real x = foo;
  //^ error[unknown-name]: there is no variable `foo` here
  real y = bar(1);
  //^ error[unknown-function]: there is no function `bar`
  real z = noraml_lpdf(1 | 0, 1);
  //^ error[unknown-function]: there is no function `noraml_lpdf`
  z ~ nrmal(0,1);
  //^ error[unknown-function]: there is no distribution `nrmal`
}
// ----
transformed data {
  real x = a.1;
  //^ error[unknown-name]: there is no variable `a` here
}
// ----
model {
  real x;
  x ~ normal(0, 1);
  print(x);
  x = y;
  //^ error[unknown-name]: there is no variable `y` here
}
// ----
functions {
  real f(real x) {
    return N;
    //^ error[unknown-name]: there is no variable `N` here
  }
}
data {
  int N;
}
