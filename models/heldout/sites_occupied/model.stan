// Sixty sites visited four times: whether a species lives there, and whether it is seen.
data {
  vector[60] z;
  vector[60] effort;
  array[60] int seen;
}
parameters {
  vector[2] lives;
  vector[2] sees;
}
model {
  lives ~ normal(0, 1.5);
  sees ~ normal(0, 1.5);
  for (i in 1 : 60) {
    real psi = lives[1] + lives[2] * z[i];
    real p = sees[1] + sees[2] * effort[i];
    real with = log_inv_logit(psi) + binomial_logit_lpmf(seen[i] | 4, p);
    if (seen[i] > 0) target += with;
    else target += log_sum_exp(with, log1m_inv_logit(psi));
  }
}
