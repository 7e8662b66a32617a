// Ratings of two inhalers in a cross-over trial: cumulative logits by hand,
// subjects expanded from pattern counts.
data {
  int<lower=0> N;
  int<lower=0> T;
  int<lower=0> G;
  int<lower=0> Npattern;
  int<lower=0> Ncut;
  array[Npattern, T] int pattern;
  array[Npattern, G] int Ncum;  // last subject with the pattern, by group
  array[G, T] int treat;
  array[G, T] int period;
  array[G, T] int carry;
}
transformed data {
  array[N] int which;  // pattern of each subject
  array[N] int group;
  {
    int next = 1;
    for (k in 1 : Npattern) {
      for (g in 1 : G) {
        while (next <= Ncum[k, g]) {
          which[next] = k;
          group[next] = g;
          next += 1;
        }
      }
    }
  }
}
parameters {
  real b_treat;
  real b_period;
  real b_carry;
  ordered[Ncut] cut;
  real<lower=0> var_;
  vector[N] subject;
}
model {
  b_treat ~ normal(0, 10);
  b_period ~ normal(0, 10);
  b_carry ~ normal(0, 10);
  cut ~ normal(0, 10);
  var_ ~ inv_gamma(0.001, 0.001);
  subject ~ normal(0, sqrt(var_));
  for (i in 1 : N) {
    int g = group[i];
    for (t in 1 : T) {
      real eta = subject[i] + 0.5 * b_treat * treat[g, t] + 0.5 * b_period * period[g, t]
                 + b_carry * carry[g, t];
      vector[Ncut + 2] above = append_row(append_row(1, 1 - inv_logit(cut + eta)), 0);
      pattern[which[i], t] ~ categorical(head(above, Ncut + 1) - tail(above, Ncut + 1));
    }
  }
}
