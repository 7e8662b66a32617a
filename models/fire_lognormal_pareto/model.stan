// Danish fire insurance claims: lognormal below a threshold, Pareto above it
// with matching density, as a user-defined density.
functions {
  real lognormal_pareto_lpdf(vector y, real alpha, real theta, real sigma) {
    int n = num_elements(y);
    real log_theta = log(theta);
    real mu = log_theta - alpha * square(sigma);
    real as = alpha * sigma;
    real lp = -n * log1p(sqrt(2 * pi()) * as * Phi(as) * exp(0.5 * square(as)));
    real log_c = log(alpha) + 0.5 * square(as) + log(sqrt(2 * pi()) * sigma);
    for (i in 1 : n) {
      if (y[i] > theta) {
        lp += log(alpha) + alpha * log_theta - (alpha + 1) * log(y[i]);
      } else {
        lp += log_c + lognormal_lpdf(y[i] | mu, sigma);
      }
    }
    return lp;
  }
}
data {
  int<lower=0> N;
  vector<lower=0>[N] x;
}
transformed data {
  vector[N] sorted = sort_asc(x);
  real low = sorted[1];
  real high = sorted[N];
}
parameters {
  real<lower=0> alpha;
  real<lower=low, upper=high> theta;
  real<lower=0> sigma;
}
model {
  alpha ~ gamma(2, 1);
  theta ~ gamma(2, 1);
  sigma ~ gamma(2, 1);
  x ~ lognormal_pareto(alpha, theta, sigma);
}
