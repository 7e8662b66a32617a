// Salmonella revertants by dose of quinoline: Poisson with plate effects.
data {
  int<lower=0> Ndoses;
  int<lower=0> Nplates;
  array[Ndoses, Nplates] int<lower=0> y;
  array[Ndoses] real<lower=0> x;
}
transformed data {
  vector[Ndoses] dose = to_vector(x) / 100;
  vector[Ndoses] log_dose = log(to_vector(x) + 10);
  dose -= mean(dose);
  log_dose -= mean(log_dose);
}
parameters {
  real level;
  real toxic;
  real mutagenic;
  real<lower=0> precision;
  matrix[Ndoses, Nplates] plate;
}
model {
  [level, toxic, mutagenic] ~ normal(0, 1000);
  precision ~ gamma(0.001, 0.001);
  to_vector(plate) ~ normal(0, inv_sqrt(precision));
  for (d in 1 : Ndoses) {
    for (p in 1 : Nplates) {
      y[d, p] ~ poisson_log(level + mutagenic * log_dose[d] + toxic * dose[d] + plate[d, p]);
    }
  }
}
