// Peak sensitivity wavelengths of monkeys' eyes: two normals, the second a
// positive shift from the first, mixing weights on the simplex.
data {
  int<lower=0> N;
  array[N] real y;
  vector<lower=0>[2] alpha;
}
parameters {
  simplex[2] share;
  real short_wave;
  real<lower=0> gap;
  real<lower=0> var_;
}
transformed parameters {
  vector[2] peak = [short_wave, short_wave + gap]';
}
model {
  real s = sqrt(var_);
  share ~ dirichlet(alpha);
  short_wave ~ normal(0, 1000);
  gap ~ normal(0, 100);
  var_ ~ inv_gamma(0.001, 0.001);
  for (i in 1 : N) {
    vector[2] part;
    for (k in 1 : 2)
      part[k] = log(share[k]) + normal_lpdf(y[i] | peak[k], s);
    target += log_sum_exp(part);
  }
}
