// Games of twelve teams, won by strength (Bradley and Terry), with an advantage at home.
data {
  array[130] int home;
  array[130] int away;
  array[130] int won;
}
parameters {
  vector[12] strength;
  real here;
  real<lower=0> tau;
}
model {
  strength ~ normal(0, tau);
  here ~ normal(0, 1);
  tau ~ gamma(3, 3);
  won ~ bernoulli_logit(here + strength[home] - strength[away]);
}
