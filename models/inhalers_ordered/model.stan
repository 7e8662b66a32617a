// Ratings of two inhalers in a cross-over trial: cumulative logits by hand,
// subjects expanded from pattern counts.
data {
  int<lower=0> N;
  int<lower=0> T;
  int<lower=0> G;
  int<lower=0> Npattern;
  int<lower=0> Ncut;
  array[Npattern, T] int pattern;
  array[Npattern, T] int Ncum;
  array[G, T] int treat;
  array[G, T] int period;
  array[G, T] int carry;
}
transformed data {
  array[N] int group;
  array[N, T] int response;
  for (i in 1 : Ncum[1, 1]) {
    group[i] = 1;
    for (t in 1 : T)
      response[i, t] = pattern[1, t];
  }
  for (i in (Ncum[1, 1] + 1) : Ncum[1, 2]) {
    group[i] = 2;
    for (t in 1 : T)
      response[i, t] = pattern[1, t];
  }
  for (k in 2 : Npattern) {
    for (i in (Ncum[k - 1, 2] + 1) : Ncum[k, 1]) {
      group[i] = 1;
      for (t in 1 : T)
        response[i, t] = pattern[k, t];
    }
    for (i in (Ncum[k, 1] + 1) : Ncum[k, 2]) {
      group[i] = 2;
      for (t in 1 : T)
        response[i, t] = pattern[k, t];
    }
  }
}
parameters {
  real<lower=0> sigmasq;
  real beta;
  real pi_;
  real kappa;
  ordered[Ncut] a;
  vector[N] b;
}
transformed parameters {
  real sigma = sqrt(sigmasq);
}
model {
  beta ~ normal(0, 10);
  pi_ ~ normal(0, 10);
  kappa ~ normal(0, 10);
  a ~ normal(0, 10);
  sigmasq ~ inv_gamma(0.001, 0.001);
  b ~ normal(0, sigma);
  for (i in 1 : N) {
    for (t in 1 : T) {
      real mu = beta * treat[group[i], t] / 2.0 + pi_ * period[group[i], t] / 2.0
                + kappa * carry[group[i], t];
      vector[Ncut] Q;
      vector[Ncut + 1] p;
      for (j in 1 : Ncut)
        Q[j] = inv_logit(-(a[j] + mu + b[i]));
      p[1] = 1 - Q[1];
      for (j in 2 : Ncut)
        p[j] = Q[j - 1] - Q[j];
      p[Ncut + 1] = Q[Ncut];
      response[i, t] ~ categorical(p);
    }
  }
}
