parameters {
  real offset;
  //^ error[reserved-name]: `offset` is a word of the language and cannot name a variable
  real multiplier;
  //^ error[reserved-name]: `multiplier` is a word of the language and cannot name a variable
  real T;
  real lower;
  //^ error[reserved-name]: `lower` is a word of the language and cannot name a variable
  real upper;
  //^ error[reserved-name]: `upper` is a word of the language and cannot name a variable
}
// ----
parameters {
  real array;
  //^ error[reserved-name]: `array` is a word of the language and cannot name a variable
}
// ----
parameters {
  real in;
  //^ error[reserved-name]: `in` is a word of the language and cannot name a variable
}
// ----
parameters {
  real target;
  //^ error[reserved-name]: `target` is a word of the language and cannot name a variable
}
// ----
parameters {
  real jacobian;
  //^ error[reserved-name]: `jacobian` is a word of the language and cannot name a variable
}
// ----
parameters {
  real profile;
  //^ error[reserved-name]: `profile` is a word of the language and cannot name a variable
}
// ----
parameters {
  real tuple;
  //^ error[reserved-name]: `tuple` is a word of the language and cannot name a variable
}
// ----
parameters {
  real print;
  //^ error[reserved-name]: `print` is a word of the language and cannot name a variable
}
// ----
transformed data {
  real x_ = 1;
  real x__ = 2;
  //^ error[reserved-name]: `x__` ends in two underscores, which is reserved
}
// ----
functions {
  real f(int real) {
  //^ error[reserved-name]: `real` is a word of the language and cannot name an argument
    return 1;
  }
  real while(int x) {
  //^ error[reserved-name]: `while` is a word of the language and cannot name a function
    return 1;
  }
}
// ----
transformed data {
  real true = 1;
  //^ error[reserved-name]: `true` is reserved and cannot be a name
}
// ----
transformed data {
  real repeat = 1;
  //^ error[reserved-name]: `repeat` is reserved and cannot be a name
  real until = 2;
  //^ error[reserved-name]: `until` is reserved and cannot be a name
  real then = 3;
  //^ error[reserved-name]: `then` is reserved and cannot be a name
  real typedef = 1;
  //^ error[reserved-name]: `typedef` is reserved and cannot be a name
  real struct=1;
  //^ error[reserved-name]: `struct` is reserved and cannot be a name
}
// ----
transformed data {
  real typedef = 1;
  //^ error[reserved-name]: `typedef` is reserved and cannot be a name
}
// ----
transformed data {
  real struct = 1;
  //^ error[reserved-name]: `struct` is reserved and cannot be a name
}
// ----
transformed data {
  real var = 1;
  //^ error[reserved-name]: `var` is reserved and cannot be a name
}
// ----
transformed data {
  real export = 1;
  //^ error[reserved-name]: `export` is reserved and cannot be a name
}
// ----
transformed data {
  real extern = 1;
  //^ error[reserved-name]: `extern` is reserved and cannot be a name
}
// ----
transformed data {
  real static = 1;
  //^ error[reserved-name]: `static` is reserved and cannot be a name
}
// ----
transformed data {
  real auto = 1;
  //^ error[reserved-name]: `auto` is reserved and cannot be a name
}
// ----
transformed data {
  real false = 1;
  //^ error[reserved-name]: `false` is reserved and cannot be a name
}
// ----
transformed data {
  real then = 1;
  //^ error[reserved-name]: `then` is reserved and cannot be a name
}
// ----
transformed data {
  real until = 1;
  //^ error[reserved-name]: `until` is reserved and cannot be a name
}
// ----
transformed data {
  real generated = 1;
  //^ error[reserved-name]: `generated` is a word of the language and cannot name a variable
  real quantities = 1;
  //^ error[reserved-name]: `quantities` is a word of the language and cannot name a variable
  real transformed = 1;
  //^ error[reserved-name]: `transformed` is a word of the language and cannot name a variable
  real functions = 1;
  //^ error[reserved-name]: `functions` is a word of the language and cannot name a variable
  real model = 1;
  //^ error[reserved-name]: `model` is a word of the language and cannot name a variable
  real parameters = 1;
  //^ error[reserved-name]: `parameters` is a word of the language and cannot name a variable
}
// ----
transformed data {
  real model = 1;
  //^ error[reserved-name]: `model` is a word of the language and cannot name a variable
}
// ----
transformed data {
  real lower = 1;
  //^ error[reserved-name]: `lower` is a word of the language and cannot name a variable
}
// ----
transformed data {
  real fatal_error = 1;
  //^ error[reserved-name]: `fatal_error` is a word of the language and cannot name a variable
}
// ----
transformed data {
  real sum_to_zero_vector = 1;
  //^ error[reserved-name]: `sum_to_zero_vector` is a word of the language and cannot name a variable
}
// ----
transformed data {
  real column_stochastic_matrix = 1;
  //^ error[reserved-name]: `column_stochastic_matrix` is a word of the language and cannot name a variable
}
// ----
transformed data {
  real data = 1;
  //^ error[reserved-name]: `data` is a word of the language and cannot name a variable
}
// ----
transformed data {
  real ordered = 1;
  //^ error[reserved-name]: `ordered` is a word of the language and cannot name a variable
}
// ----
transformed data {
  real profile = 1;
  //^ error[reserved-name]: `profile` is a word of the language and cannot name a variable
}
// ----
functions {
  real target(real x) {
  //^ error[reserved-name]: `target` is a word of the language and cannot name a function
    return 1;
  }
}
// ----
transformed data {
  real generated = 1;
  //^ error[reserved-name]: `generated` is a word of the language and cannot name a variable
}
// ----
transformed data {
  real quantities = 1;
  //^ error[reserved-name]: `quantities` is a word of the language and cannot name a variable
}
// ----
transformed data {
  real transformed = 1;
  //^ error[reserved-name]: `transformed` is a word of the language and cannot name a variable
}
// ----
transformed data {
  real functions = 1;
  //^ error[reserved-name]: `functions` is a word of the language and cannot name a variable
}
// ----
transformed data {
  real parameters = 1;
  //^ error[reserved-name]: `parameters` is a word of the language and cannot name a variable
}
