// Support for Bush in polls of 1988: demographic, state and region effects.
data {
  int<lower=0> N;
  int<lower=0> n_age;
  int<lower=0> n_edu;
  int<lower=0> n_state;
  int<lower=0> n_region;
  array[N] int<lower=0, upper=1> y;
  vector[N] black;
  vector[N] female;
  array[N] int<lower=1, upper=n_age> age;
  array[N] int<lower=1, upper=n_edu> edu;
  array[N] int<lower=1, upper=n_state> state;
  array[n_state] int<lower=1, upper=n_region> region;
  vector[n_state] v_prev;
}
parameters {
  vector[4] beta;
  real b_v_prev;
  vector[n_age] a_raw;
  vector[n_edu] b_raw;
  matrix[n_age, n_edu] c_raw;
  vector[n_state] d_raw;
  vector[n_region] e_raw;
  vector<lower=0>[5] sigma;
}
transformed parameters {
  vector[n_age] a = sigma[1] * a_raw;
  vector[n_edu] b = sigma[2] * b_raw;
  matrix[n_age, n_edu] c = sigma[3] * c_raw;
  vector[n_region] e = sigma[5] * e_raw;
  vector[n_state] d = sigma[4] * d_raw + b_v_prev * v_prev + e[region];
}
model {
  vector[N] eta;
  beta ~ normal(0, 5);
  b_v_prev ~ normal(0, 5);
  sigma ~ normal(0, 1);
  a_raw ~ std_normal();
  b_raw ~ std_normal();
  to_vector(c_raw) ~ std_normal();
  d_raw ~ std_normal();
  e_raw ~ std_normal();
  for (i in 1 : N) {
    eta[i] = beta[1] + beta[2] * black[i] + beta[3] * female[i] + beta[4] * female[i] * black[i]
             + a[age[i]] + b[edu[i]] + c[age[i], edu[i]] + d[state[i]];
  }
  y ~ bernoulli_logit(eta);
}
