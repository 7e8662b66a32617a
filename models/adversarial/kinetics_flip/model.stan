// Absorption and elimination that may change places: two modes.
transformed data {
  vector[9] t = [0.5, 1, 1.5, 2, 3, 4, 6, 8, 12]';
  vector[9] y = [1.586, 2.503, 3.217, 2.732, 2.816, 2.535, 1.615, 0.9698, 0.3448]';
}
parameters {
  real la;
  real le;
  real lv;
}
model {
  la ~ normal(log(0.5), 1);
  le ~ normal(log(0.5), 1);
  lv ~ normal(log(2), 0.7);
  y ~ lognormal(log(10) - lv + la + log((exp(-exp(le) * t) - exp(-exp(la) * t)) / (exp(la) - exp(le))), 0.06);
}
