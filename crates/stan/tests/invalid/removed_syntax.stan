transformed data {
  real a = lp__;
  //^ error[removed-syntax]: `lp__` is no longer part of Stan
}
// ----
transformed data {
  real a = get_lp();
  //^ error[removed-syntax]: `get_lp` is no longer part of Stan
}
// ----
data {
  int<lower=0> N[3];
  //^ error[removed-syntax]: sizes of an array no longer follow its name
}
// ----
model {
  real x;
  x <- 1;
  //^ error[removed-syntax]: `<-` is no longer part of Stan
}
// ----
model {
  increment_log_prob(1);
  //^ error[removed-syntax]: `increment_log_prob` is no longer part of Stan
}
// ----
model {
  real x = 1;
  # comment
  //^ error[removed-syntax]: comments no longer start with `#`
  x = 2;
}
// ----
model {
  real x = if_else(1, 2, 3);
  //^ error[removed-syntax]: `if_else` is no longer part of Stan
}
// ----
model {
  real x = normal_log(1, 0, 1);
  //^ error[removed-syntax]: `normal_log` is no longer part of Stan
}
// ----
model {
  real x = bernoulli_cdf_log(1, 0.5);
  //^ error[removed-syntax]: `bernoulli_cdf_log` is no longer part of Stan
  x = poisson_ccdf_log(1, 2.0);
  //^ error[removed-syntax]: `poisson_ccdf_log` is no longer part of Stan
}
// ----
functions {
  real f(real[] x) {
  //^ error[removed-syntax]: this form of array type is no longer part of Stan
    return 1;
  }
}
