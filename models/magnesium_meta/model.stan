// Magnesium after heart attacks: meta-analysis of eight trials, centred on the
// larger ones by a precision weight worked out in transformed data.
data {
  int<lower=0> N_studies;
  array[N_studies] int<lower=0> rt;
  array[N_studies] int<lower=0> nt;
  array[N_studies] int<lower=0> rc;
  array[N_studies] int<lower=0> nc;
}
transformed data {
  int total = 0;
  int largest = 0;
  real s0_sqrd;
  {
    real sum_inverse = 0;
    for (n in nt) {
      if (n == 0) {
        continue;
      }
      total += n;
      largest = max({largest, n});
    }
    for (i in 1 : N_studies) {
      sum_inverse += inv(rt[i] + 0.5) + inv(nt[i] - rt[i] + 0.5)
                     + inv(rc[i] + 0.5) + inv(nc[i] - rc[i] + 0.5);
    }
    s0_sqrd = N_studies / sum_inverse;
  }
  print("patients treated: ", total, ", largest arm ", largest);
}
parameters {
  real<lower=-10, upper=10> mu;
  vector[N_studies] theta;
  vector<lower=0, upper=1>[N_studies] pc;
  real<lower=0, upper=1> D;
}
transformed parameters {
  // DuMouchel's prior: tau = s0 (1 - D) / D.
  real<lower=0> tau = sqrt(s0_sqrd) * (1 - D) / D;
}
model {
  pc ~ uniform(0, 1);
  theta ~ normal(mu, tau);
  rc ~ binomial(nc, pc);
  rt ~ binomial_logit(nt, theta + logit(pc));
}
generated quantities {
  real odds_ratio = exp(mu);
  int<lower=0, upper=1> helps = mu < 0;
}
