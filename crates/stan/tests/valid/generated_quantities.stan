generated quantities {
  array[3] real x = normal_rng({1,2,3}, 1);
  real y = normal_rng(1, 2);
  int z = poisson_rng(3);
  vector[3] v = to_vector(normal_rng([1,2], 1));
}
// ----
generated quantities {
  real x = sin(normal_rng(0,1));
  if (x > 1) {
    real y = uniform_rng(0,1);
  }
}
// ----
generated quantities {
  {
    vector[poisson_rng(3)] z;
  }
}
// ----
generated quantities {
  real y = normal_rng(0, 1) + sin(std_normal_rng());
  array[2] int z = bernoulli_rng({0.5, 0.5});
}
