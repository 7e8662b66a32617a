// Choices of one of three.
data {
  vector[100] z;
  array[100] int y;
}
parameters {
  vector[2] a;
  vector[2] b;
}
model {
  a ~ normal(0, 2);
  b ~ normal(0, 2);
  for (i in 1 : 100) y[i] ~ categorical_logit([0, a[1] + b[1] * z[i], a[2] + b[2] * z[i]]');
}
