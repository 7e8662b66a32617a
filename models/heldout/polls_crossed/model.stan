// A poll in cells of thirty regions, six ages and three schoolings, with regions and ages interacting.
data {
  array[540] int region;
  array[540] int age;
  array[540] int school;
  array[540] int both;
  array[540] int asked;
  array[540] int yes;
}
parameters {
  real mu;
  vector[30] a;
  vector[6] b;
  vector[3] c;
  vector[180] d;
  vector<lower=0>[4] tau;
}
model {
  mu ~ normal(0, 1);
  a ~ normal(0, 1);
  b ~ normal(0, 1);
  c ~ normal(0, 1);
  d ~ normal(0, 1);
  tau ~ normal(0, 0.7);
  yes ~ binomial_logit(asked, mu + tau[1] * a[region] + tau[2] * b[age] + tau[3] * c[school] + tau[4] * d[both]);
}
