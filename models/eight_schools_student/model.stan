// Eight schools with heavy-tailed school effects of unknown degrees of freedom.
data {
  int<lower=0> J;
  vector[J] y;
  vector<lower=0>[J] sigma;
}
parameters {
  real mu;
  real<lower=0> tau;
  real<lower=0, upper=1> inv_nu;
  vector<offset=mu, multiplier=tau>[J] theta;
}
transformed parameters {
  real nu = 1 / inv_nu;
}
model {
  mu ~ normal(0, 10);
  tau ~ student_t(4, 0, 10);
  inv_nu ~ uniform(0, 1);
  theta ~ student_t(nu, mu, tau);
  y ~ normal(theta, sigma);
}
