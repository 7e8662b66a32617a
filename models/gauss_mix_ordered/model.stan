// Two normal components on the line, identified by the order of their means.
data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  ordered[2] centre;
  vector<lower=0>[2] spread;
  real<lower=0, upper=1> share;
}
model {
  for (i in 1 : N) {
    target += log_mix(share,
                      normal_lpdf(y[i] | centre[1], spread[1]),
                      normal_lpdf(y[i] | centre[2], spread[2]));
  }
  centre ~ normal(0, 2);
  spread ~ normal(0, 2);
  share ~ beta(5, 5);
}
