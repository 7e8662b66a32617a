// Robertson's chemical reaction as a system with a law of conservation in the place of its third rate: rates from
// noisy concentrations of two of the three substances.
functions {
  vector reaction(real t, vector y, vector yp, vector rate) {
    real slow = rate[1] * y[1];
    real back = rate[3] * y[2] * y[3];
    real fast = rate[2] * square(y[2]);
    return [yp[1] - back + slow, yp[2] - slow + back + fast, sum(y) - 1]';
  }
}
data {
  int<lower=1> N;
  array[N] real<lower=0> times;
  vector[N] first;
  vector[N] second;
}
parameters {
  vector[3] log_ratio;
  real<lower=0> sigma;
}
model {
  vector[3] rate = [0.04, 3e7, 1e4]' .* exp(0.5 * log_ratio);
  array[N] vector[3] y = dae_tol(reaction, [1, 0, 0]', [-rate[1], rate[1], 0]', 0, times, 1e-8, 1e-12, 100000, rate);
  log_ratio ~ std_normal();
  sigma ~ exponential(20);
  first ~ normal(to_vector(y[, 1]), sigma);
  second ~ normal(2e4 * to_vector(y[, 2]), sigma);
}
