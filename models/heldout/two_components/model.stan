// Two ordered normals.
data {
  vector[80] y;
}
parameters {
  ordered[2] mu;
  vector<lower=0>[2] s;
  real<lower=0, upper=1> w;
}
model {
  mu ~ normal(0, 5);
  s ~ gamma(3, 3);
  w ~ beta(3, 3);
  for (i in 1 : 80) target += log_mix(w, normal_lpdf(y[i] | mu[1], s[1]), normal_lpdf(y[i] | mu[2], s[2]));
}
