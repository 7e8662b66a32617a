// Party identification in 1980, seven ordered categories, on ideology, race and
// income.
data {
  int<lower=0> N;
  array[N] int<lower=1, upper=7> partyid7;
  vector[N] real_ideo;
  vector[N] race_adj;
  vector[N] income;
}
transformed data {
  matrix[N, 3] x;
  x[ : , 1] = real_ideo - 4;
  x[ : , 2] = race_adj - 1;
  x[ : , 3] = income - 3;
}
parameters {
  vector[3] beta;
  ordered[6] cut;
}
model {
  beta ~ normal(0, 1);
  cut ~ normal(0, 3);
  partyid7 ~ ordered_logistic(x * beta, cut);
}
