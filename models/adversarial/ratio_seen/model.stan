// Two positive numbers of which the data see the ratio alone.
parameters {
  vector<lower=0>[2] x;
}
model {
  2 ~ normal(x[1] / x[2], 0.1);
}
