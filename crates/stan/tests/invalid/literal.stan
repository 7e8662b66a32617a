transformed data {
  int a = 2147483648;
  //^ error[literal]: integers cannot be larger than 2147483647
}
// ----
transformed data {
  int a = -2147483648;
  //^ error[literal]: integers cannot be larger than 2147483647
}
