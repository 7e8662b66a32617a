// Law School Admission Test, section 6: one-parameter logistic model. The data
// are counts of answer patterns, expanded to one row per person.
data {
  int<lower=0> N;                            // persons
  int<lower=0> R;                            // patterns
  int<lower=0> T;                            // items
  array[R] int<lower=0> culm;                // cumulative counts of patterns
  array[R, T] int<lower=0, upper=1> response;
}
transformed data {
  array[T, N] int r;
  {
    int i = 1;
    for (p in 1 : R) {
      while (i <= culm[p]) {
        for (k in 1 : T) {
          r[k, i] = response[p, k];
        }
        i += 1;
      }
    }
  }
}
parameters {
  vector[T] alpha;
  vector[N] theta;
  real<lower=0> beta;
}
model {
  alpha ~ normal(0, 100.0);
  theta ~ normal(0, 1);
  beta ~ normal(0.0, 100.0);
  for (k in 1 : T) {
    r[k] ~ bernoulli_logit(beta * theta - alpha[k]);
  }
}
generated quantities {
  real mean_alpha = mean(alpha);
  vector[T] a = alpha - mean_alpha;
}
