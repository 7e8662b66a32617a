// Three ordered normals of one spread with unknown weights.
data {
  vector[110] y;
}
parameters {
  ordered[3] mu;
  simplex[3] w;
  real<lower=0> s;
}
model {
  mu ~ normal(0, 4);
  w ~ dirichlet(rep_vector(3, 3));
  s ~ gamma(3, 3);
  for (i in 1 : 110) {
    vector[3] part = log(w);
    for (k in 1 : 3) part[k] += normal_lpdf(y[i] | mu[k], s);
    target += log_sum_exp(part);
  }
}
