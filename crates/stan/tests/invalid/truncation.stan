model {
  vector[2] v;
  v ~ multi_normal(v, [[1]]) T[0,];
  //^ error[truncation]: `multi_normal` cannot be truncated: there is no `multi_normal_lcdf`
}
// ----
model {
  1 ~ bernoulli_logit(1) T[0,];
  //^ error[truncation]: `bernoulli_logit` cannot be truncated: there is no `bernoulli_logit_lcdf`
}
// ----
parameters {
  vector[2] v;
}
model {
  v ~ normal(v, 1) T[v, 3];
  //^ error[truncation]: a bound of truncation must be int or real, found vector
}
// ----
functions {
  real foo_lpdf(real x, real a) {
    return 1;
  }
  real foo_lcdf(real x, real a) {
    return 1;
  }
}
model {
  1.0 ~ foo(1) T[,1];
  //^ error[truncation]: `foo` cannot be truncated: there is no `foo_lccdf`
  1.0 ~ foo(1) T[0,1];
  //^ error[truncation]: `foo` cannot be truncated: there is no `foo_lccdf`
}
// ----
functions {
  real foo_lpdf(real x, real a) {
    return 1;
  }
  real foo_lcdf(real x, real a) {
    return 1;
  }
}
model {
  1.0 ~ foo(1) T[1,];
  //^ error[truncation]: `foo` cannot be truncated: there is no `foo_lccdf`
}
// ----
functions {
  real foo_lpdf(real x, real a) {
    return 1;
  }
  real foo_cdf(real x, real a) {
    return 1;
  }
}
model {
  1.0 ~ foo(1) T[1,];
  //^ error[truncation]: `foo` cannot be truncated: there is no `foo_lcdf`
}
// ----
functions {
  real foo_lpdf(real x, real a) {
    return 1;
  }
  real foo_lcdf(real x, real a) {
    return 1;
  }
}
model {
  1.0 ~ foo(1) T[,1];
  //^ error[truncation]: `foo` cannot be truncated: there is no `foo_lccdf`
}
// ----
functions {
  real foo_lpdf(real x, real a) {
    return 1;
  }
  real foo_lcdf(real x, real a) {
    return 1;
  }
}
model {
  1.0 ~ foo(1) T[1.0,];
  //^ error[truncation]: `foo` cannot be truncated: there is no `foo_lccdf`
}
// ----
model {
  1.0 ~ loglogistic(1, 2) T[,3.0];
  //^ error[truncation]: `loglogistic` cannot be truncated: there is no `loglogistic_lcdf`
}
