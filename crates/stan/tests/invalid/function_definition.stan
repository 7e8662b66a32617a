functions {
  real f(int x);
  //^ error[function-definition]: the function `f` is declared but never defined
}
// ----
functions {
  real f_lpdf(int x) {
  //^ error[function-definition]: the first argument of a density (_lpdf) is its variate, not an integer
    return 1;
  }
}
// ----
functions {
  real f_lpmf(real x) {
  //^ error[function-definition]: the first argument of a mass function (_lpmf) is its variate, an integer
    return 1;
  }
}
// ----
functions {
  int f_lpmf(int x) {
  //^ error[function-definition]: `f_lpmf` must return real, as its name says; found int
    return 1;
  }
}
// ----
functions {
  real f_lpdf() {
  //^ error[function-definition]: the first argument of a density (_lpdf) is its variate, not an integer
    return 1;
  }
}
// ----
functions {
  real foo_lupdf(real x) {
  //^ error[function-definition]: a density must be defined with its constants
    return 1;
  }
}
// ----
functions {
  real f(real x);
  //^ error[function-definition]: the function `f` is declared but never defined
}
model {
  real x = f(1);
}
// ----
functions {
  real foo_lpdf(array[] int x) {
  //^ error[function-definition]: the first argument of a density (_lpdf) is its variate, not an integer
    return 1;
  }
}
// ----
functions {
  void foo_lpdf(real x) {
  //^ error[function-definition]: `foo_lpdf` must return real, as its name says; found void
  }
}
// ----
functions {
  void f(void x) {
  //^ error[function-definition]: an argument cannot be `void`
  }
}
