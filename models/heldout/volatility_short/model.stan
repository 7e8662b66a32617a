// Volatility of eighty days, by its shocks.
data {
  vector[80] y;
}
parameters {
  real mu;
  real<lower=0, upper=1> phi;
  real<lower=0> q;
  vector[80] e;
}
model {
  vector[80] h;
  h[1] = e[1] * q / sqrt(1 - square(phi));
  for (i in 2 : 80) h[i] = phi * h[i - 1] + q * e[i];
  mu ~ normal(0, 2);
  phi ~ beta(8, 2);
  q ~ normal(0, 0.5);
  e ~ normal(0, 1);
  y ~ normal(0, exp((mu + h) / 2));
}
