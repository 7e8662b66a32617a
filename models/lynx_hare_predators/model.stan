// Pelts of hare and lynx (Hudson's Bay Company): prey and predators by the
// equations of Lotka and Volterra, measured with lognormal errors.
functions {
  vector growth(real t, vector y, real birth, real predation, real death, real conversion) {
    return [(birth - predation * y[2]) * y[1], (conversion * y[1] - death) * y[2]]';
  }
}
data {
  int<lower=2> N;
  array[N] vector<lower=0>[2] y;
}
transformed data {
  array[N - 1] real years = linspaced_array(N - 1, 1, N - 1);
}
parameters {
  real<lower=0> birth;
  real<lower=0> predation;
  real<lower=0> death;
  real<lower=0> conversion;
  vector<lower=0>[2] start;
  vector<lower=0>[2] sigma;
}
model {
  array[N - 1] vector[2] mu = ode_rk45_tol(growth, start, 0, years, 1e-8, 1e-8, 100000,
                                           birth, predation, death, conversion);
  birth ~ normal(1, 0.5);
  death ~ normal(1, 0.5);
  predation ~ normal(0.05, 0.05);
  conversion ~ normal(0.05, 0.05);
  sigma ~ lognormal(-1, 1);
  start ~ lognormal(2.3, 1);
  y[1] ~ lognormal(log(start), sigma);
  for (n in 2 : N) {
    y[n] ~ lognormal(log(mu[n - 1]), sigma);
  }
}
generated quantities {
  vector[2] next = ode_rk45_tol(growth, start, 0, {N * 1.0}, 1e-8, 1e-8, 100000,
                                birth, predation, death, conversion)[1];
}
