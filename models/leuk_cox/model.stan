// Remission of leukaemia: Cox regression by counting-process increments.
data {
  int<lower=0> N;
  int<lower=0> NT;
  array[N] int<lower=0> obs_t;
  array[NT + 1] int<lower=0> t;
  array[N] int<lower=0> fail;
  array[N] real Z;
}
transformed data {
  array[N, NT] int Y;
  array[N, NT] int dN;
  for (i in 1 : N) {
    for (j in 1 : NT) {
      Y[i, j] = obs_t[i] >= t[j];
      dN[i, j] = Y[i, j] * (t[j + 1] > obs_t[i]) * fail[i];
    }
  }
}
parameters {
  real beta;
  array[NT] real<lower=0> dL0;
}
model {
  real c = 0.001;
  real r = 0.1;
  beta ~ normal(0, 1000);
  for (j in 1 : NT) {
    dL0[j] ~ gamma(r * (t[j + 1] - t[j]) * c, c);
    for (i in 1 : N) {
      if (Y[i, j] != 0) {
        target += poisson_lpmf(dN[i, j] | Y[i, j] * exp(beta * Z[i]) * dL0[j]);
      }
    }
  }
}
generated quantities {
  array[NT] real S_placebo;
  array[NT] real S_treat;
  real s = 0;
  for (j in 1 : NT) {
    s += dL0[j];
    S_treat[j] = pow(exp(-s), exp(beta * -0.5));
    S_placebo[j] = pow(exp(-s), exp(beta * 0.5));
  }
}
