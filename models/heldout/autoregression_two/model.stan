// An autoregression of order two, ninety steps.
data {
  vector[90] y;
}
parameters {
  real c;
  vector<lower=-1, upper=1>[2] phi;
  real<lower=0> s;
}
model {
  c ~ normal(0, 1);
  s ~ normal(0, 2);
  y[3 : 90] ~ normal(c + phi[1] * y[2 : 89] + phi[2] * y[1 : 88], s);
}
