// Yields of thirty-six plots with a conditional autoregression whose dependence is estimated.
data {
  array[60] int first;
  array[60] int second;
  vector[36] number;
  vector[36] values;
  vector[36] y;
}
parameters {
  real mu;
  real<lower=0> tau;
  real<lower=0, upper=1> rho;
  real<lower=0> s;
  vector[36] field;
}
model {
  mu ~ normal(0, 5);
  tau ~ gamma(2, 1);
  rho ~ beta(2, 1);
  s ~ gamma(5, 15);
  target += 18 * log(tau) + 0.5 * sum(log1m(rho * values));
  target += -0.5 * tau * (sum(number .* square(field)) - 2 * rho * dot_product(field[first], field[second]));
  y ~ normal(mu + field, s);
}
