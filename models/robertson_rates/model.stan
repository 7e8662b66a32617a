// Robertson's chemical reaction, whose rates differ by nine orders of magnitude: rates from
// noisy concentrations of two of the three substances.
functions {
  vector reaction(real t, vector y, vector rate) {
    real slow = rate[1] * y[1];
    real back = rate[3] * y[2] * y[3];
    real fast = rate[2] * square(y[2]);
    return [back - slow, slow - back - fast, fast]';
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
  array[N] vector[3] y = ode_bdf_tol(reaction, [1, 0, 0]', 0, times, 1e-8, 1e-12, 100000, rate);
  log_ratio ~ std_normal();
  sigma ~ exponential(20);
  first ~ normal(to_vector(y[, 1]), sigma);
  second ~ normal(2e4 * to_vector(y[, 2]), sigma);
}
