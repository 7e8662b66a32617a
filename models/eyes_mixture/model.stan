// Peak sensitivity wavelengths of monkeys' eyes: two normals, the second a
// positive shift from the first, mixing weights on the simplex.
data {
  int<lower=0> N;
  array[N] real y;
  vector<lower=0>[2] alpha;
}
parameters {
  simplex[2] p;
  real<lower=0> theta;
  real lambda_1;
  real<lower=0> sigmasq;
}
transformed parameters {
  ordered[2] lambda;
  real<lower=0> sigma = sqrt(sigmasq);
  lambda[1] = lambda_1;
  lambda[2] = lambda_1 + theta;
}
model {
  p ~ dirichlet(alpha);
  theta ~ normal(0, 100);
  lambda_1 ~ normal(0.0, 1.0E3);
  sigmasq ~ inv_gamma(1.0E-3, 1.0E-3);
  {
    vector[2] log_p = log(p);
    for (n in 1 : N) {
      vector[2] lps = log_p;
      for (k in 1 : 2) {
        lps[k] += normal_lpdf(y[n] | lambda[k], sigma);
      }
      target += log_sum_exp(lps);
    }
  }
}
