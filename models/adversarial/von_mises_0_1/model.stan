// A von Mises with concentration 0.1 on a full turn.
parameters {
  real<lower=-pi(), upper=pi()> x;
}
model {
  x ~ von_mises(0, 0.1);
}
