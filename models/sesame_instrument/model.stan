// Sesame Street: letter score and viewing with encouragement as instrument,
// errors correlated.
data {
  int<lower=0> N;
  vector[N] y;
  vector[N] watched;
  vector[N] encouraged;
}
parameters {
  real viewing;
  real b_encouraged;
  real score;
  real b_watched;
  vector<lower=0>[2] sigma;
  real<lower=-1, upper=1> rho;
}
model {
  viewing ~ normal(0.5, 1);
  b_encouraged ~ normal(0, 1);
  score ~ normal(25, 20);
  b_watched ~ normal(0, 20);
  sigma[1] ~ normal(0, 1);
  sigma[2] ~ normal(0, 20);
  rho ~ normal(0, 0.5);
  vector[N] view = viewing + b_encouraged * encouraged;
  watched ~ normal(view, sigma[1]);
  // The score given the viewing, whose error it shares.
  y ~ normal(score + b_watched * watched + rho * sigma[2] / sigma[1] * (watched - view),
             sigma[2] * sqrt(1 - square(rho)));
}
