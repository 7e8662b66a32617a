transformed data {
  real a = 1 / 2;
  //^ warning[integer-division]: this divides integers and drops the remainder
}
// ----
functions {
  real f(int x) {
    return 2;
    print(x);
    //^ warning[unreachable]: no path of the program reaches this
  }
}
// ----
functions {
  real f(int x) {
    return 2;
    ;
    //^ warning[unreachable]: no path of the program reaches this
  }
}
// ----
functions {
  real f(int x) {
    return 1;
    return 2;
    //^ warning[unreachable]: no path of the program reaches this
  }
}
// ----
functions {
  real f(int x) {
    reject("a");
    print("b");
    //^ warning[unreachable]: no path of the program reaches this
  }
}
// ----
transformed data {
  int x = (1 < 2) + 3;
  x = 1 && 0 || !1;
  x = 1 ? 2 : 3;
  x = 5 / 2;
  //^ warning[integer-division]: this divides integers and drops the remainder
  x = -5;
  x = 5 % 2;
  x = 5 - 2 * 3;
}
