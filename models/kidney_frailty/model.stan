// Times to infection of kidney patients: Weibull with patient frailties and
// right censoring (McGilchrist and Aisbett 1991).
data {
  int<lower=0> NP;
  int<lower=0> N_uc;
  int<lower=0> N_rc;
  array[N_uc] real<lower=0> t_uc;
  array[N_rc] real<lower=0> t_rc;
  array[N_uc] int disease_uc;
  array[N_rc] int disease_rc;
  array[N_uc] int patient_uc;
  array[N_rc] int patient_rc;
  array[N_uc] int sex_uc;
  array[N_rc] int sex_rc;
  array[N_uc] int age_uc;
  array[N_rc] int age_rc;
}
transformed data {
  real mean_age = (sum(age_uc) + sum(age_rc)) * 1.0 / (N_uc + N_rc);
}
parameters {
  real alpha;
  real beta_age;
  real beta_sex;
  vector[3] beta_disease;
  real<lower=0> r;
  real<lower=0> sigma;
  vector[NP] b;
}
transformed parameters {
  vector[4] disease_effect = append_row(0, beta_disease);
}
model {
  alpha ~ normal(0, 10);
  beta_age ~ normal(0, 1);
  beta_sex ~ normal(0, 5);
  beta_disease ~ normal(0, 5);
  r ~ gamma(1, 0.1);
  sigma ~ cauchy(0, 1);
  b ~ normal(0, sigma);
  for (i in 1 : N_uc) {
    real eta = alpha + beta_age * (age_uc[i] - mean_age) / 10 + beta_sex * sex_uc[i]
               + disease_effect[disease_uc[i]] + b[patient_uc[i]];
    t_uc[i] ~ weibull(r, exp(-eta / r));
  }
  for (i in 1 : N_rc) {
    real eta = alpha + beta_age * (age_rc[i] - mean_age) / 10 + beta_sex * sex_rc[i]
               + disease_effect[disease_rc[i]] + b[patient_rc[i]];
    target += weibull_lccdf(t_rc[i] | r, exp(-eta / r));
  }
}
