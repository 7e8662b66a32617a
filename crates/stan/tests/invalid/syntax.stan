functions {
  real foo(real x) return x;
  //^ error[syntax]: expected `{` and the body of the function, found the word `return`
}
// ----
transformed data {
  array[3] real v = {1,2,3};
  array[0] int z = {};
  //^ error[syntax]: an array expression needs at least one element
}
// ----
transformed data {
  break;
  //^ error[syntax]: `break` is outside any loop
}
// ----
transformed data {
  real x = "a";
  //^ error[syntax]: a string is not a value
}
// ----
transformed data {
  print("a", 1, [1]);
  reject("a");
  fatal_error("b");
  //^ warning[unreachable]: no path of the program reaches this
  print();
  //^ warning[unreachable]: no path of the program reaches this
  //^ error[syntax]: `print` needs an argument
}
// ----
transformed data {
  real x = normal_lpdf(1, 0, 1);
  //^ error[syntax]: the first argument of `normal_lpdf` is separated by `|`
}
// ----
transformed data {
  real x = sin(1 | 2);
  //^ error[syntax]: `sin` separates its arguments by commas, without `|`
}
// ----
transformed data {
  tuple(int) t;
  //^ error[syntax]: a tuple has two components or more
}
// ----
transformed data {
  real _x = 1;
  //^ error[syntax]: names cannot start with an underscore
}
// ----
transformed data {
  int n = 3;
  n /= 2;
  n -= 1;
  n *= 2;
  n ^= 2;
  //^ error[syntax]: expected an expression, found `=`
}
// ----
functions {
  real f(real(real) g) {
  //^ error[syntax]: expected the name of an argument, found `(`
    return 1;
  }
}
// ----
model {
}
data {
//^ error[syntax]: the `data` block must come before `model`
}
// ----
model {
}
model {
//^ error[syntax]: there is a second `model` block
}
// ----
data {
}
foo {}
//^ error[syntax]: expected a block of the program, found `foo`
// ----
model {
  real x = 1
  //^ error[syntax]: expected `;` here, found `}`
}
// ----
model {
  real x = (1 + ; real y = 2;
  //^ error[syntax]: expected an expression, found `;`
}
// ----
model {
  real x = sin(1));
  //^ error[syntax]: expected `;` here, found `)`
}
// ----
transformed data {
  print("a" , "b\
  //^ error[syntax]: this string is not closed on its line
");
//^ error[syntax]: this string is not closed on its line
}
//^ error[syntax]: expected an expression, found `}`
// ----
transformed data {
  tuple(int,int) t = ();
  //^ error[syntax]: expected an expression, found `)`
}
// ----
transformed data {
  vector[2] v;
  real x = v'[1];
  //^ error[syntax]: a transpose cannot be indexed directly
  x = v'*v;
  //^ error[unknown-name]: there is no variable `x` here
}
// ----
functions {
  void f(vector[3] v) {
  //^ error[syntax]: types of functions cannot have sizes
  }
}
// ----
transformed data {
  real x;
  x = 1 + ;
  //^ error[syntax]: expected an expression, found `;`
  x = 3;
}
// ----
transformed data {
  real x = .5 + 1. + 1e5 + 1.e-5 + 1_000.0_1 + 0x1;
  //^ error[syntax]: expected `;` here, found `x1`
}
// ----
transformed data {
  real x = 1_;
  //^ error[syntax]: names cannot start with an underscore
}
// ----
data {
  real<lower=(1 > 2)> x;
  real<lower=1 + 2 * 3> y;
  real<lower=1 ? 2 : 3> z;
  //^ error[syntax]: comparisons, logical operators and `?:` are not allowed in a bound
}
// ----
model {
  real x = 1;
  x = 2 = 3;
  //^ error[syntax]: expected `;` here, found `=`
}
// ----
transformed data {
  string x;
  //^ error[syntax]: `string` is not a type
  int[] y;
  //^ error[removed-syntax]: `int` has no size
  int[3] z;
  //^ error[removed-syntax]: `int` has no size
  real[] w;
  //^ error[removed-syntax]: `real` has no size
  vector x;
  //^ error[syntax]: expected `[` and 1 size of the type, found `x`
  matrix[3] m;
  //^ error[size]: this type needs 2 sizes, found 1
  foo x;
  //^ error[syntax]: `foo` is not a type
}
// ----
transformed data {
  real x = fmin(1 | 2);
  //^ error[syntax]: `fmin` separates its arguments by commas, without `|`
}
// ----
transformed data {
  real x = fmin(1 | );
  //^ error[syntax]: `fmin` separates its arguments by commas, without `|`
}
// ----
transformed data {
  real x = normal_lpdf(1, 2 | 3);
  //^ error[syntax]: expected `)`, found `|`
}
// ----
functions {
  real f(real x) {
    return x;
  }
}
transformed data {
  real x = f(1 | );
  //^ error[syntax]: `f` separates its arguments by commas, without `|`
}
// ----
model {
  real x = dirichlet_lpdf([1]' | [1]');
  {1, 2} ~ normal(0, 1);
  {
    real q = 1;
  }
  {1};
  //^ error[syntax]: expected an assignment, `~` or `;`, found `}`
}
// ----
model {
  target = 1;
  //^ error[syntax]: `target` supports only `+=`
}
// ----
model {
  real x = target;
  //^ error[syntax]: `target` is not a variable
}
// ----
model {
  if (x = 1) ;
  //^ error[syntax]: an assignment is not a condition
}
// ----
model {
  else ;
  //^ error[syntax]: this `else` has no `if`
}
// ----
model {
  5;
  //^ error[syntax]: a value alone is not a statement
}
// ----
model {
  real x;
  x;
  //^ error[syntax]: a value alone is not a statement
}
// ----
model {
  float x = 1;
  //^ error[syntax]: `float` is not a type
}
// ----
model {
  real x = 3 @ 4;
  //^ error[syntax]: expected `;` here, found `4`
  //^ error[syntax]: this is not a part of any word or symbol of Stan
}
// ----
model {
  print("abc); }
  //^ error[syntax]: this string is not closed on its line
// ----
model {
  /* not closed
  //^ error[syntax]: this comment is not closed
}
// ----
model {
  real x = 1.;
  int y = 3 & 4;
  //^ error[syntax]: expected `;` here, found `4`
  //^ error[syntax]: this is not a part of any word or symbol of Stan
}
// ----
data {
  real<lower=0, foo=1> x;
  //^ error[syntax]: expected `lower`, `upper`, `offset` or `multiplier`, found `foo`
}
// ----
data {
  vector x;
  //^ error[syntax]: expected `[` and 1 size of the type, found `x`
}
// ----
data {
  array[2] array[3] real x;
  //^ error[syntax]: write an array of arrays as one array
}
// ----
functions {
  array[] void f() {
  //^ error[syntax]: there are no arrays of `void`
  }
}
// ----
functions {
  real f(simplex x) {
  //^ error[syntax]: `simplex` is a constrained type, which functions cannot have
    return 1;
  }
}
// ----
functions {
  real f(array[3] real x) {
  //^ error[syntax]: array types of functions cannot have sizes
    return 1;
  }
}
// ----
functions {
  real f(real x, ) {
  //^ error[syntax]: expected another argument, found `)`
    return 1;
  }
}
// ----
parameters {
  real x;
}
transformed data {
//^ error[syntax]: the `transformed data` block must come before `parameters`
  real y = 1;
}
// ----
functions {
  vector shard(vector phi, vector theta, data array[] real x, data array[] int n) {
    return [sum(phi) + sum(theta) + x[1] + n[1]]';
  }
}
parameters {
  vector[2] phi;
  array[3] vector[1] theta;
}
transformed data {
//^ error[syntax]: the `transformed data` block must come before `parameters`
  array[3, 1] real xr = rep_array(0.0, 3, 1);
}
