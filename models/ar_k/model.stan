// Autoregression of order K.
data {
  int<lower=0> K;
  int<lower=K> T;
  array[T] real y;
}
parameters {
  real level;
  array[K] real phi;
  real<lower=0> noise;
}
model {
  noise ~ cauchy(0, 2.5);
  level ~ normal(0, 10);
  phi ~ normal(0, 10);
  for (now in K + 1 : T) {
    real forecast = level;
    for (lag in 1 : K) {
      forecast += phi[lag] * y[now - lag];
    }
    y[now] ~ normal(forecast, noise);
  }
}
