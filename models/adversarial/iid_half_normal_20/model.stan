// Twenty half-normals: the mass is at the corner.
parameters {
  vector<lower=0>[20] x;
}
model {
  x ~ normal(0, 1);
}
