// Antibody titres of vaccinated children over log time: varying lines, the
// baseline titre taken as exact.
data {
  int<lower=0> N;
  int<lower=0> N1;
  array[N1] int<lower=1, upper=N> idxn1;
  vector[N1] Yvec1;
  vector[N1] tvec1;
  vector[N] y0;
}
transformed data {
  vector[N] baseline = y0 - mean(y0);
  vector[N1] late = tvec1 - 6.5;
}
parameters {
  vector[N] a;
  vector[N] b;
  real mu_a;
  real mu_b;
  real gamma;
  real<lower=0> sd_a;
  real<lower=0> sd_b;
  real<lower=0> sigma;
}
model {
  mu_a ~ normal(5, 5);
  mu_b ~ normal(-1, 2);
  gamma ~ normal(0, 2);
  sd_a ~ normal(0, 2);
  sd_b ~ normal(0, 1);
  sigma ~ normal(0, 2);
  a ~ std_normal();
  b ~ std_normal();
  Yvec1 ~ normal(mu_a + sd_a * a[idxn1] + gamma * baseline[idxn1]
                 + (mu_b + sd_b * b[idxn1]) .* late, sigma);
}
