// Rows and columns with effects of their own.
data {
  array[80] int r;
  array[80] int c;
  vector[80] y;
}
parameters {
  real mu;
  vector[10] a;
  vector[8] b;
  real<lower=0> sa;
  real<lower=0> sb;
  real<lower=0> s;
}
model {
  mu ~ normal(0, 5);
  [sa, sb, s] ~ normal(0, 2);
  a ~ normal(0, sa);
  b ~ normal(0, sb);
  y ~ normal(mu + a[r] + b[c], s);
}
