functions {
  real sin(tuple(real,real) x) {
    return 1;
  }
}
// ----
functions {
  real foo(real foo) {
    return foo;
  }
}
// ----
functions {
  real foo(real x) {
    return x;
  }
}
parameters {
  real foo;
}
// ----
functions {
  void f_lp(real x) {
    target += x;
  }
}
transformed parameters {
  f_lp(1);
}
// ----
functions {
  void f_jacobian(real x) {
    jacobian += x;
  }
}
transformed parameters {
  f_jacobian(1);
}
// ----
functions {
  real f(int x) {
    return 1;
  }
  real f(real x) {
    return 1;
  }
  real f(vector x) {
    return 1;
  }
}
transformed data {
  real a = f(1) + f(2.0) + f([1]');
}
// ----
functions {
  real f(int x) {
    while (1) {
      return 1;
    }
  }
}
// ----
functions {
  real f(int x) {
    reject("a");
  }
  real g(int x) {
    fatal_error("x");
  }
  real h(int x) {
    for (i in 1:2) return 1;
  }
}
// ----
functions {
  real f(int x) {
    return f(x-1);
  }
}
// ----
functions {
  real f(int x);
  real f(int x) {
    return 1;
  }
}
// ----
functions {
  vector f_rng() {
    return [normal_rng(0,1)]';
  }
}
generated quantities {
  vector[1] x = f_rng();
}
// ----
functions {
  real f_lpdf(real x) {
    return normal_lupdf(x | 0, 1);
  }
}
model {
  1.0 ~ f();
  target += f_lupdf(1|);
  target += f_lpdf(1 | );
}
// ----
functions {
  void f() {
    profile("a") {
    }
  }
}
// ----
functions {
  real f(array[] real x) {
    return 1;
  }
}
transformed data {
  real a = f({1,2});
}
// ----
functions {
  real f_log(real x) {
    return 1;
  }
}
// ----
functions {
  real ps_lpmf(array[] int s, int a, int b, real x) {
    return 1;
  }
}
model {
  target += reduce_sum(ps_lpmf, {1,2}, 1, 1.0);
  target += reduce_sum(ps_lupmf, {1,2}, 1, 1.0);
}
// ----
functions {
  vector f(real t, vector y) {
    return y;
  }
  vector f(real t, vector y, int a) {
    return y;
  }
}
model {
  array[2] vector[1] y = ode_rk45(f, [1]', 0, {1, 2}, 2);
  y = ode_rk45(f, [1]', 0, {1, 2});
}
// ----
functions {
  real f(int x) {
    if (x) {
      return 1;
    }
    return 2;
  }
}
// ----
functions {
  real f(int x) {
    {
      return 2;
    }
  }
}
// ----
functions {
  real f(int x) {
    profile("a") {
      return 2;
    }
  }
}
// ----
functions {
  real f(int x) {
    if (x) return 1;
    else reject("a");
  }
}
// ----
functions {
  tuple(real, int) f(tuple(real, array[] int) x) {
    return (x.1, x.2[1]);
  }
  array[,] tuple(int,int) g(array[] tuple(int,int) y) {
    return {y};
  }
}
transformed data {
  real a;
  int b;
  (a, b) = f((1, {2}));
  a = f((1.5, {1})).1;
  a = f((1.5, {1})).1;
}
// ----
functions {
  void f(vector v, array[,] real x, data array[] int y, data real z) {
    int N = size(y);
    vector[N] w = v;
    array[N] real q;
  }
}
// ----
functions {
  void f(real x) {
    real y;
  }
  void g() {
    f(1);
  }
}
model {
  f(1);
  g();
}
// ----
functions {
  real foo_lcdf(real x) {
    return 1;
  }
  real foo_lccdf(real x) {
    return 1;
  }
  real foo_cdf(real x) {
    return 1;
  }
  real foo_ccdf(real x) {
    return 1;
  }
}
model {
  target += foo_lcdf(1 | ) + foo_lccdf(1 |) + foo_cdf(1|) ;
}
// ----
functions {
  vector foo_lp(real x) {
    target += 1;
    return [1]';
  }
  real g_lp() {
    return target();
  }
}
model {
  vector[1] x = foo_lp(1);
  x[1] = g_lp();
}
// ----
functions {
  real f_rng() {
    return normal_rng(0,1);
  }
}
transformed data {
  real x = f_rng();
}
// ----
functions {
  real f(real x) {
    return g(x);
  }
  real g(real x) {
    return f(x);
  }
}
// ----
functions {
  int f(int n) {
    return n;
  }
}
transformed data {
  vector[f(3)] x;
  array[f(2)] real y;
}
// ----
functions {
  real normal_lpdf(real x, int y, array[] int z) {
    return 1;
  }
  real foo_lpdf(real x) {
    return 1;
  }
  real foo_lpmf(int x) {
    return 1;
  }
}
model {
  1 ~ foo();
}
// ----
functions {
  real foo_lpdf(real x, real a) {
    return 1;
  }
  real foo_lcdf(real x, real a) {
    return 1;
  }
  real foo_lccdf(real x, real a) {
    return 1;
  }
}
model {
  1.0 ~ foo(1) T[,1];
  1.0 ~ foo(1) T[0,1];
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
  1.0 ~ foo(1) T[,];
}
// ----
functions {
  real foo_lpdf(vector x, real a) {
    return 1;
  }
  real foo_lcdf(real x, real a) {
    return 1;
  }
  real foo_lccdf(real x, real a) {
    return 1;
  }
}
model {
  [1]' ~ foo(1) T[,3.0];
}
// ----
functions {
  real f(real x, int f2, array[] real T) {
    return 1;
  }
}
// ----
functions {
  void f(int x) {
    f(x);
  }
  void f(real x) {
    f(1);
  }
}
// ----
functions {
  real foo_cdf(int x) {
    return 1;
  }
  real foo_lcdf(vector x) {
    return 1;
  }
}
// ----
functions {
  real foo_lpdf(tuple(real,int) x) {
    return 1;
  }
}
// ----
functions {
  real foo_lpmf(tuple(int,int) x) {
    return 1;
  }
}
// ----
functions {
  real foo_lpmf(array[,] int x) {
    return 1;
  }
}
// ----
functions {
  real foo_lpdf(complex x) {
    return 1;
  }
}
// ----
functions {
  real sin_lpdf(real x) {
    return 1;
  }
  real normal_lpdf(real x, real y) {
    return 1;
  }
}
// ----
functions {
  real normal_lpdf(real x, int y, int z) {
    return 1;
  }
}
model {
  1 ~ normal(1, 1);
}
// ----
functions {
  real foo(real x) {
    return 1;
  }
}
model {
  int foo = 1;
}
// ----
functions {
  real f(data array[] int y, data int z) {
    return 1;
  }
}
model {
  int x = 2;
  real a = f({x}, x);
}
// ----
functions {
  vector decay(real t, vector y, real k, data array[] int n) {
    return -k * y * n[1];
  }
}
data {
  int<lower=1> T;
  array[T] real ts;
  vector[1] y0;
  array[T] vector[1] y;
}
parameters {
  real<lower=0> k;
  real<lower=0> s;
}
model {
  array[T] vector[1] mu = ode_rk45(decay, y0, 0, ts, k, {1});
  for (t in 1:T) {
    y[t] ~ normal(mu[t], s);
  }
  k ~ lognormal(0, 1);
  s ~ exponential(1);
}
// ----
functions {
  real part_lpmf(array[] int slice, int from, int to, vector eta) {
    return bernoulli_logit_lupmf(slice | eta[from:to]);
  }
}
data {
  int N;
  array[N] int<lower=0, upper=1> y;
  matrix[N, 2] X;
}
parameters {
  vector[2] b;
}
model {
  target += reduce_sum(part_lupmf, y, 1, X * b);
  b ~ normal(0, 1);
}
// ----
functions {
  real g(real x, real xc, array[] real theta, data array[] real xr, data array[] int xi) {
    return exp(-x * theta[1]);
  }
}
parameters {
  real<lower=0> a;
}
model {
  target += integrate_1d(g, 0, 1, {a}, {0.0}, {1});
  target += integrate_1d(g, 0, a, {a}, {0.0}, {1}, 1e-6);
}
// ----
functions {
  vector root(vector y, real a) {
    return y .* y - a;
  }
}
parameters {
  real<lower=1> a;
}
transformed parameters {
  vector[1] r = solve_powell(root, [1]', a);
  vector[1] q = solve_newton_tol(root, [1]', 1e-6, 1e-6, 100, a);
}
// ----
functions {
  vector res(real t, vector yy, vector yp, real k) {
    return yp + k * yy;
  }
}
parameters {
  real k;
}
model {
  array[2] vector[1] y = dae(res, [1]', [-1]', 0.0, {1.0, 2.0}, k);
  target += y[1];
}
// ----
functions {
  vector shard(vector phi, vector theta, data array[] real x, data array[] int n) {
    return [sum(phi) + sum(theta) + x[1] + n[1]]';
  }
}
transformed data {
  array[3, 1] real xr = rep_array(0.0, 3, 1);
  array[3, 1] int xi = rep_array(1, 3, 1);
}
parameters {
  vector[2] phi;
  array[3] vector[1] theta;
}
model {
  target += map_rect(shard, phi, theta, xr, xi);
}
// ----
functions {
  real ll(vector t, array[] int y) {
    return poisson_log_lpmf(y | t);
  }
  matrix cov(real a) {
    return diag_matrix(rep_vector(a, 3));
  }
}
data {
  array[3] int y;
}
parameters {
  real<lower=0> a;
}
model {
  target += laplace_marginal(ll, (y,), 1, cov, (a,));
}
// ----
functions {
  matrix cov(real a, int n) {
    return diag_matrix(rep_vector(a, n));
  }
}
data {
  array[3] int y;
  array[3] int ix;
}
parameters {
  real<lower=0> a;
  vector[3] m;
}
model {
  target += laplace_marginal_poisson_log_lpmf(y | ix, m, 1, cov, (a, 3));
}
// ----
functions {
  real up_jacobian(real x) {
    jacobian += x;
    return exp(x);
  }
}
parameters {
  real u;
}
transformed parameters {
  real<lower=0> s = up_jacobian(u);
}
