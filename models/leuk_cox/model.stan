// Remission of leukaemia: Cox regression by counting-process increments.
data {
  int<lower=0> N;
  int<lower=0> NT;
  array[N] int<lower=0> obs_t;
  array[NT + 1] int<lower=0> t;
  array[N] int<lower=0> fail;
  array[N] real Z;
}
parameters {
  real beta;
  array[NT] real<lower=0> hazard;  // baseline increments
}
model {
  beta ~ normal(0, 1000);
  for (j in 1 : NT) {
    // A gamma process with a prior guess of 0.1 per unit of time.
    hazard[j] ~ gamma(1e-4 * (t[j + 1] - t[j]), 0.001);
    for (i in 1 : N) {
      if (obs_t[i] >= t[j]) {
        int event = fail[i] == 1 && obs_t[i] < t[j + 1] ? 1 : 0;
        event ~ poisson(hazard[j] * exp(beta * Z[i]));
      }
    }
  }
}
generated quantities {
  array[NT] real survival_placebo;
  array[NT] real survival_treated;
  {
    vector[NT] total = cumulative_sum(to_vector(hazard));
    for (j in 1 : NT) {
      survival_placebo[j] = exp(-total[j] * exp(0.5 * beta));
      survival_treated[j] = exp(-total[j] * exp(-0.5 * beta));
    }
  }
}
