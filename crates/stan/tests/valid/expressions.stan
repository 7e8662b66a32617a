transformed data {
  real a = 1 ? 1 : 2.0;
  array[1] real b = 1 ? {1} : {2.0};
  array[2] real c = {1, 2.0};
}
// ----
transformed data {
  row_vector[0] r = [];
  matrix[2,2] m = [[1,2],[3,4]];
  complex_row_vector[2] c = [1, 2i];
}
// ----
transformed data {
  vector[2] v;
  matrix[2,2] m = [v',v'];
}
// ----
transformed parameters {
  real x = target();
  jacobian += 1;
}
// ----
transformed data {
  real x = normal_lpdf(1 | 0, 1) + normal_cdf(1 | 0, 1) + normal_lcdf(1| 0, 1);
}
// ----
transformed data {
  profile("a") {
    profile("b") {
    }
  }
}
// ----
transformed data {
  matrix[2,2] m;
  m[1] = [1,2];
  m[,1] = [1,2]';
  m[1,1] += 1;
  m[1] *= 2;
  m .*= m;
  m ./= 2;
  m += 1;
}
// ----
transformed data {
  real a;
  real b;
  (a, b) = (1, 2);
  tuple(real, real) t = (1, 2);
  t.1 = 3;
  t.2 += 1;
  t = (1.0, 2.0);
  (t.1, t.2) = t;
}
// ----
transformed data {
  tuple(int, array[2] tuple(real, vector[2])) t;
  t.2[1].2[1] = 3;
  real x = t.2[1].1;
}
// ----
transformed data {
  array[1] int a = -{1};
  real b = +1.5;
  vector[1] v = +[1]';
}
// ----
transformed data {
  matrix[2,2] m;
  vector[2] v = m \ v;
  row_vector[2] r = r / m;
  m = m / m;
  m = m ^ 2;
  m = m .^ m;
  m = m .^ 2;
  v = 2 .^ v;
}
// ----
transformed data {
  matrix[2,2] m;
  m = 2 ./ m;
  m = m ./ 2;
  m = m .* 2;
}
// ----
transformed data {
  array[2] real a;
  a = a ^ 2;
  a = a .^ 2;
  a = pow(a, 2);
}
// ----
transformed data {
  real a = 2 ^ -1;
  a = -2 ^ 2;
  a = 2 ^ 2 ^ 2;
}
// ----
transformed data {
  complex z = 1;
  z = 2 + 1i;
  z = z * 2;
  z = 1.5;
  z += 1;
  complex_vector[2] v = [1,2]';
  array[2] complex az = {1, 2.0};
}
// ----
transformed data {
  complex_vector[2] v;
  matrix[2,2] m;
  complex_vector[2] w = m * v;
}
// ----
transformed data {
  array[2] real x = {1, 2};
  array[2] int y = {1, 2};
  x = y;
  x[1:2] = y;
}
// ----
transformed data {
  real a, b = 2, c;
  array[2] int q, r = {1, 2};
}
// ----
transformed data {
  matrix[2,2] m;
  real x = m[1,1];
  row_vector[2] r = m[1];
  vector[2] v = m[:,1];
  m = m[1:2];
  m = m[1:2,{1,2}];
  r = m[1,:];
  x = m[1][1];
  x = (m[1])[1];
}
// ----
transformed data {
  array[2] real a = {1,2};
  array[2] vector[2] b;
  b = {[1,2]', [3,4]'};
  a = b[,1];
  a[1] = b[1,1];
  b[,1] = a;
  b[1:2,1] = {1,2};
}
// ----
transformed data {
  tuple(real,int) t = (1, 2);
  tuple(complex,real) u = t;
}
// ----
transformed data {
  array[2] tuple(real,int) t = {(1, 2), (2.0, 3)};
}
// ----
transformed data {
  array[2] tuple(real,int) t = {(1.0, 2), (2, 3)};
  real y = 1 ? t[1].1 : t[1].2;
}
// ----
transformed data {
  int x = 1;
  {
    int y = 2;
  }
  {
    int y = 3;
  }
  for (i in 1:2) int z = 3;
}
// ----
transformed data {
  for (i in 1:2) for (j in 1:2) {
    int y = 2;
    continue;
  }
}
// ----
transformed data {
  if (1) int z = 3;
}
// ----
transformed data {
  complex x = 1i + .5i + 1.i + 1e3i;
}
// ----
transformed data {
  real x = 1e400;
}
// ----
transformed data {
  int a = min({1,2});
  real b = max({1.0,2});
  int c = max(1,2);
  real d = fmax(1,2);
  int e = abs(-3);
  int f = sum({1,2});
  int g = num_elements({{1}});
  array[2] int h = dims([[1]]);
  int i = size([1]);
  int j = rows([1]);
  int k = to_int(2.5);
  real l = mean({1,2});
}
// ----
transformed data {
  array[2,2] real x = rep_array(1.0, 2, 2);
  array[2] int y = rep_array(1, 2);
  vector[2] v = rep_vector(1, 2);
  matrix[2,2] m = rep_matrix(1, 2,2);
  array[2] vector[2] z = rep_array(v, 2);
}
// ----
transformed data {
  real x = 1;
  print("x = ", x, " ", {1,2}, (1,2));
  reject("bad", x);
}
// ----
transformed data {
  real fvar = 1;
}
// ----
transformed data {
  real STAN_MAJOR = 1;
}
// ----
transformed data {
  real int_ = 1;
  real alignas = 1;
  real double = 2;
  real class = 1;
  real bool = 3;
  real while_=1;
}
// ----
transformed data {
  real T = 1;
}
// ----
transformed data {
  real get_lp = 1;
}
// ----
transformed data {
  real reduce_sum = 1;
}
// ----
transformed data {
  real pi = 1;
  real y = pi();
}
// ----
transformed data {
  real pi = 1;
  real y = pi;
}
// ----
transformed data {
  real model_ = 1;
  real for_each = 1;
}
// ----
transformed data {
  int K = 2;
  K = 3;
  vector[K] z;
}
// ----
transformed parameters {
  {
    int t;
  }
  for (i in 1:2) {
    int q = 1;
  }
}
// ----
transformed data {
  array[2] real a = {1, 2};
  a = {1, 2} ;
  array[2,2] real b = {{1, 2}, {1.5, 2}};
  b = {a, {1, 2}};
}
// ----
transformed data {
  array[2] complex a = {1, 2i};
  complex_matrix[1,2] m = [[1, 2i]];
  m = [[1,2]];
  m = [[1,2i],[1.0,2]];
}
// ----
transformed data {
  vector[2] v = [1,2]';
  v = v + 1;
  v = 1 + v;
  v = v / 2;
  v = 2 - v;
  v = -v;
  v = v .* v;
  v = 2 / v;
}
// ----
transformed data {
  real x = 1;
  x += 1;
  x -= 1;
  x *= 2;
  x /= 2;
  int i = 4;
  i /= 2;
  i += 1;
  i *= 2;
  i -= 1;
  complex z = 1;
  z *= 2i;
  z /= 2;
}
// ----
transformed data {
  row_vector[2] v;
  v *= [[1,2],[3,4]];
}
// ----
transformed data {
  real x = log_sum_exp({1, 2});
  x = log_sum_exp([1,2]);
  x = log_sum_exp(1, 2);
  x = log_mix(0.5, 1, 2);
  x = sum([1,2]);
  x = max({1,2});
  x = dot_product([1,2],[1,2]');
  vector[2] v = softmax([1,2]');
  v = cumulative_sum(v);
  x = mean({1,2});
  x = sd([1,2]);
  x = quantile({1,2}, 0.5);
  int k = sum({1,2});
  k = num_elements([1]);
  v = sort_asc(v);
  array[2] int s = sort_indices_asc(v);
  v = head(v, 2);
  s = reverse(s);
  s = append_array(s, s);
  v = append_row(v, v);
  v = append_row(1.0, v);
  matrix[2,2] m = append_col(v, v);
  m = diag_matrix(v);
  m = cholesky_decompose(m);
  v = m \ v;
  x = log_determinant(m);
  m = inverse(m);
  m = rep_matrix(0, 2, 2);
  v = to_vector({1,2});
  v = to_vector(m);
  m = to_matrix(v, 2, 1);
  s = to_array_1d({{1,2}});
  array[2] real r = to_array_1d(v);
}
// ----
transformed data {
  array[1] real z = {1};
  real y = pow(2, 3) + 2^3 + sqrt(2) + pi() + e() + inv_logit(0) + Phi(1) + fma(1, 2, 3) + lgamma(3) + atan2(1, 2) + step(1) + floor(2.5) + hypot(3, 4) + lbeta(1, 2) + choose(4, 2) + lmultiply(1, 2) + log1p_exp(1) + expm1(1) + trunc(1.5) + fmod(5, 3) + ldexp(1.0, 2);
  int c = choose(4, 2);
  real mp = machine_precision() + positive_infinity() + not_a_number();
}
// ----
transformed data {
  int i = 1;
  real x = i ? 1.0 : 2;
  x = i > 0 ? 1 : 2;
}
// ----
transformed parameters {
  jacobian += 1;
  real x = 2;
  jacobian += log(x);
}
