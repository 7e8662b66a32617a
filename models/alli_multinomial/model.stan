// Food of alligators by size and lake: multinomial logit on counts.
data {
  int<lower=0> I;
  int<lower=0> J;
  int<lower=0> K;
  array[I, J, K] int<lower=0> X;
}
parameters {
  vector[K - 1] alpha;
  array[I - 1] vector[K - 1] beta;
  array[J - 1] vector[K - 1] gamma;
}
transformed parameters {
  array[I, J] vector[K] phi;
  for (i in 1 : I) {
    for (j in 1 : J) {
      vector[K - 1] eta = alpha;
      if (i > 1)
        eta += beta[i - 1];
      if (j > 1)
        eta += gamma[j - 1];
      phi[i, j] = append_row(0, eta);
    }
  }
}
model {
  alpha ~ normal(0, 5);
  for (i in 1 : (I - 1))
    beta[i] ~ normal(0, 5);
  for (j in 1 : (J - 1))
    gamma[j] ~ normal(0, 5);
  for (i in 1 : I) {
    for (j in 1 : J) {
      X[i, j] ~ multinomial(softmax(phi[i, j]));
    }
  }
}
generated quantities {
  array[J, K] int X_rep;
  for (j in 1 : J) {
    X_rep[j] = multinomial_rng(softmax(phi[1, j]), sum(X[1, j]));
  }
}
