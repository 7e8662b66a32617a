functions {
  real f(int x, real y) {
    return 1;
  }
  real f(real x, int y) {
    return 1;
  }
}
transformed data {
  real a = f(1,1);
  //^ error[ambiguous-call]: this call of `f` matches several of its signatures
}
