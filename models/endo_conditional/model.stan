// Endometrial cancer and oestrogen in matched pairs: conditional likelihood of
// the discordant pairs.
data {
  int<lower=0> n10;
  int<lower=0> n01;
}
transformed data {
  int discordant = n10 + n01;
}
parameters {
  real beta;
}
model {
  beta ~ normal(0, 1000);
  n10 ~ binomial_logit(discordant, beta);
}
generated quantities {
  real odds_ratio = exp(beta);
}
