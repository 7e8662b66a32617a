// Three normal components for the monkeys' eyes data, with a Dirichlet prior.
data {
  int<lower=0> N;
  vector[N] y;
}
transformed data {
  int K = 3;
  vector[N] z = (y - mean(y)) / sd(y);
}
parameters {
  simplex[K] w;
  ordered[K] mu;
  vector<lower=0>[K] sigma;
}
model {
  array[K] real acc;
  w ~ dirichlet(rep_vector(2.0, K));
  mu ~ normal(0, 2);
  sigma ~ lognormal(-1, 1);
  for (n in 1 : N) {
    for (k in 1 : K) {
      acc[k] = log(w[k]) + normal_lpdf(z[n] | mu[k], sigma[k]);
    }
    target += log_sum_exp(acc);
  }
}
generated quantities {
  array[N] int<lower=1, upper=K> component;
  for (n in 1 : N) {
    vector[K] lp;
    for (k in 1 : K) {
      lp[k] = log(w[k]) + normal_lpdf(z[n] | mu[k], sigma[k]);
    }
    component[n] = categorical_logit_rng(lp);
  }
}
