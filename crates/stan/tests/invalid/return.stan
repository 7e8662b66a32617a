transformed data {
  return;
  //^ error[return]: `return` is outside any function
}
// ----
model {
  return;
  //^ error[return]: `return` is outside any function
}
// ----
functions {
  real f(int x) {
  //^ error[return]: some path through `f` returns no value
    if (x) return 1;
  }
}
// ----
functions {
  real f(int x) {
  //^ error[return]: some path through `f` returns no value
    if (x) return 1;
    else return 2;
    print(1);
  }
}
// ----
functions {
  real f(real x) {
    real y = x;
    vector[3] v;
    return y;
  }
  void g(vector v) {
    return;
  }
  void h() {
    return 1;
    //^ error[return]: a void function returns no value
  }
  real k() {
    return;
    //^ error[return]: this function must return a value of type real
  }
}
// ----
functions {
  real f(int x) {
  //^ error[return]: some path through `f` returns no value
    {
      return 2;
    }
    real y;
  }
}
// ----
functions {
  real f(int x) {
  //^ error[return]: some path through `f` returns no value
    for (i in 1:2) {
      if (i) return 1;
    }
  }
}
// ----
functions {
  real f(int x) {
  //^ error[return]: some path through `f` returns no value
    while (1) {
      if (x) return 1;
      break;
    }
  }
}
// ----
functions {
  real f(real x) {
  //^ error[return]: some path through `f` returns no value
  }
}
// ----
functions {
  real f() {
    return [1, 2];
    //^ error[return]: this function returns real, found row_vector
  }
}
