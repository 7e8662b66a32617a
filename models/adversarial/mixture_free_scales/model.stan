// A mixture in which a component may shrink onto a point.
transformed data {
  vector[8] y = [-2.1, -1.9, -0.3, 0.1, 0.4, 1.2, 2.5, 3.1]';
}
parameters {
  vector[2] mu;
  vector<lower=0>[2] sigma;
}
model {
  for (n in 1 : 8) target += log_mix(0.5, normal_lpdf(y[n] | mu[1], sigma[1]), normal_lpdf(y[n] | mu[2], sigma[2]));
}
