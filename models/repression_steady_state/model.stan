// Two genes that act on each other, at their steady state under several doses of an inducer:
// the state is the root of two equations.
functions {
  vector balance(vector y, real dose, vector made, vector bend) {
    return [made[1] / (1 + y[2] ^ bend[1]) + 0.1 - y[1],
            made[2] * y[1] / (1 + y[1] + dose * bend[2]) - y[2]]';
  }
}
data {
  int<lower=1> N;
  vector<lower=0>[N] dose;
  array[N] vector<lower=0>[2] level;
}
parameters {
  vector<lower=0>[2] made;
  vector<lower=0>[2] bend;
  real<lower=0> sigma;
}
model {
  made ~ lognormal(1, 0.5);
  bend ~ lognormal(0, 0.5);
  sigma ~ exponential(5);
  for (n in 1 : N) {
    vector[2] y = solve_powell_tol(balance, [1, 1]', 1e-10, 1e-10, 1000, dose[n], made, bend);
    level[n] ~ lognormal(log(y), sigma);
  }
}
