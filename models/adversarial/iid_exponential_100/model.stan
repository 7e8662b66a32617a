// A hundred exponentials: the mass is at the edge.
parameters {
  vector<lower=0>[100] x;
}
model {
  x ~ exponential(1);
}
