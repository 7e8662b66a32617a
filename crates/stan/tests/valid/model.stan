model {
  1 ~ normal(0, 1) T[,];
}
// ----
model {
  vector[2] v;
  v ~ normal(0, 1) T[0,];
}
// ----
model {
  vector[2] v;
  target += v;
  target += {1.0, 2};
  target += {{1}};
  target += [1];
  target += [[1]];
}
// ----
model {
  target += 1i;
}
// ----
model {
  real x = normal_lupdf(1 | 0, 1);
}
// ----
model {
  target += normal_lpdf({1} | {1}, 1);
  target += std_normal_lpdf(1 | );
  target += std_normal_lpdf(1);
  1 ~ std_normal();
}
// ----
model {
  vector[int_step(1.0)] z;
}
// ----
model {
  int sin = 1;
  real y = sin(1);
  int q = sin;
}
// ----
model {
  {
    int a;
  }
  {
    int a;
  }
  int a;
}
// ----
model {
  vector[2] x;
  x ~ multi_normal([0,0]', identity_matrix(2));
  array[2] vector[2] y;
  y ~ multi_normal({[0,0]', [0,0]'}, identity_matrix(2));
  {1, 0} ~ bernoulli(0.5);
  1 ~ categorical([0.5,0.5]');
}
// ----
model {
  real x = 1;
  ;
}
