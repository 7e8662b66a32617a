// Law School Admission Test, section 6: one-parameter logistic model. The data
// are counts of answer patterns, expanded to one row per person.
data {
  int<lower=0> N;                            // persons
  int<lower=0> R;                            // patterns
  int<lower=0> T;                            // items
  array[R] int<lower=0> culm;                // cumulative counts of patterns
  array[R, T] int<lower=0, upper=1> response;
}
transformed data {
  array[T, N] int answer;
  {
    int row = 1;
    for (person in 1 : N) {
      while (culm[row] < person) {
        row += 1;
      }
      answer[ : , person] = response[row];
    }
  }
}
parameters {
  vector[T] difficulty;
  vector[N] ability;
  real<lower=0> slope;
}
model {
  difficulty ~ normal(0, 100);
  ability ~ std_normal();
  slope ~ normal(0, 100);
  for (item in 1 : T) {
    answer[item] ~ bernoulli_logit(slope * ability - difficulty[item]);
  }
}
generated quantities {
  vector[T] centred = difficulty - mean(difficulty);
}
