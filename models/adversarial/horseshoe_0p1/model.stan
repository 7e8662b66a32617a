// A horseshoe over six means, global scale 0.1.
transformed data {
  vector[6] y = [0.0, 0.5, 1.0, 3.0, 6.0, 10.0]';
}
parameters {
  vector[6] beta;
  vector<lower=0>[6] lambda;
}
model {
  lambda ~ cauchy(0, 1);
  beta ~ normal(0, 0.1 * lambda);
  y ~ normal(beta, 1);
}
