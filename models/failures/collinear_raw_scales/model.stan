// Earnings on height in inches, in centimetres and on sex, nothing centred or
// scaled: coefficients nearly collinear and of very different sizes.
data {
  int<lower=0> N;
  vector[N] earn;
  vector[N] height;
  vector[N] male;
}
transformed data {
  vector[N] height_cm;
  for (n in 1 : N) {
    height_cm[n] = round(2.54 * height[n]);
  }
}
parameters {
  real alpha;
  real b_inch;
  real b_cm;
  real b_male;
  real<lower=0> sigma;
}
model {
  earn ~ normal(alpha + b_inch * height + b_cm * height_cm + b_male * male, sigma);
}
