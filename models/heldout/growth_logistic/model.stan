// A logistic curve of growth.
data {
  vector[25] t;
  vector[25] y;
}
parameters {
  real<lower=0> top;
  real<lower=0> rate;
  real middle;
  real<lower=0> s;
}
model {
  top ~ normal(0, 20);
  rate ~ lognormal(0, 1);
  middle ~ normal(5, 3);
  s ~ normal(0, 1);
  y ~ normal(top * inv_logit(rate * (t - middle)), s);
}
