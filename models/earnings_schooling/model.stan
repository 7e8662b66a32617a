// Log earnings on years of schooling, sex, height and age with Laplace errors.
data {
  int<lower=0> N;
  vector<lower=0>[N] earnings;
  vector<lower=0>[N] education;
  array[N] int<lower=1, upper=2> sex;
  vector[N] height;
  vector[N] age;
}
transformed data {
  vector[N] schooling = education - 12;
  vector[N] tall = (height - 66) / 4;
  vector[N] decades = (age - 40) / 10;
}
parameters {
  vector[2] level;
  vector[2] b_schooling;
  real b_height;
  vector[2] b_age;
  real<lower=0> sigma;
}
model {
  level ~ normal(9, 3);
  b_schooling ~ normal(0, 1);
  b_height ~ normal(0, 1);
  b_age ~ normal(0, 1);
  sigma ~ exponential(1);
  log(earnings) ~ double_exponential(level[sex] + b_schooling[sex] .* schooling
                                     + b_height * tall + b_age[1] * decades
                                     + b_age[2] * square(decades), sigma);
}
