model {
  1 ~ normal_lpdf(0, 1);
  //^ error[unknown-function]: a distribution after `~` has no suffix
}
// ----
model {
  [1,2] ~ normal(0,1);
  -1 ~ normal(0,1);
  1 + 2 ~ normal(0, 1);
  (1) ~ normal(0,1);
  foo(1) ~ normal(0,1);
  //^ error[unknown-function]: there is no function `foo`
}
// ----
functions {
  real foo_log(real x) {
    return 1;
  }
}
model {
  1.0 ~ foo();
  //^ error[unknown-function]: there is no distribution `foo`
}
// ----
functions {
  real foo_lpdf(real x) {
    return 1;
  }
}
model {
  1 ~ foo();
  target += foo_lpmf(1 | );
  //^ error[unknown-function]: there is no function `foo_lpmf`
}
// ----
model {
  real mu;
  mu ~ nomal(0, 1);
  //^ error[unknown-function]: there is no distribution `nomal`
}
// ----
model {
  real x = nromal_lpdf(1 | 0, 1);
  //^ error[unknown-function]: there is no function `nromal_lpdf`
}
// ----
model {
  real x = normal_lpmf(1 | 0, 1);
  //^ error[unknown-function]: there is no function `normal_lpmf`
  x = poisson_lpdf(1 | 2.0);
  //^ error[unknown-function]: there is no function `poisson_lpdf`
}
