//! Stan functions for densities that are not in Stan's library, and for random numbers with these distributions.

/// The skew-normal distribution, parameterised by its mean, its standard deviation and its slant.
pub const SKEW_NORMAL: &str = "
  // Skew normal by mean, standard deviation and slant.
  real skew_normal_mean_lpdf(real y, real mu, real sigma, real alpha) {
    real delta = alpha / sqrt(1 + square(alpha));
    real omega = sigma / sqrt(1 - 2 / pi() * square(delta));
    return skew_normal_lpdf(y | mu - omega * delta * sqrt(2 / pi()), omega, alpha);
  }
  real skew_normal_mean_rng(real mu, real sigma, real alpha) {
    real delta = alpha / sqrt(1 + square(alpha));
    real omega = sigma / sqrt(1 - 2 / pi() * square(delta));
    return skew_normal_rng(mu - omega * delta * sqrt(2 / pi()), omega, alpha);
  }";

/// The generalised extreme value distribution, which is the limiting distribution of the maximum of many values.
pub const GEN_EXTREME_VALUE: &str = "
  // Generalised extreme value by location, scale and shape.
  real gen_extreme_value_lpdf(real y, real mu, real sigma, real xi) {
    real x = xi * (y - mu) / sigma;
    if (x <= -1) {
      return negative_infinity();
    }
    real z = log1p(x) / xi;
    return -log(sigma) - (1 + xi) * z - exp(-z);
  }
  real gen_extreme_value_rng(real mu, real sigma, real xi) {
    return mu + sigma * expm1(-xi * log(-log(uniform_rng(0, 1)))) / xi;
  }";

/// The inverse Gaussian distribution, parameterised by its mean and its shape. Random numbers are drawn by the method
/// of Michael, Schucany and Haas, The American Statistician 30 (1976).
pub const INVERSE_GAUSSIAN: &str = "
  // Inverse Gaussian by mean and shape.
  real inverse_gaussian_lpdf(real y, real mu, real shape) {
    return 0.5 * log(shape / (2 * pi())) - 1.5 * log(y) - 0.5 * shape * square((y - mu) / mu) / y;
  }
  real inverse_gaussian_rng(real mu, real shape) {
    real v = square(std_normal_rng());
    real x = mu + square(mu) * v / (2 * shape)
             - mu / (2 * shape) * sqrt(4 * mu * shape * v + square(mu * v));
    return uniform_rng(0, 1) <= mu / (mu + x) ? x : square(mu) / x;
  }";

/// The log-normal distribution with a shift.
pub const SHIFTED_LOGNORMAL: &str = "
  // Log-normal that begins at ndt.
  real shifted_lognormal_lpdf(real y, real mu, real sigma, real ndt) {
    return lognormal_lpdf(y - ndt | mu, sigma);
  }
  real shifted_lognormal_rng(real mu, real sigma, real ndt) {
    return ndt + lognormal_rng(mu, sigma);
  }";

/// The Poisson distribution with excess zeros.
pub const ZERO_INFLATED_POISSON: &str = "
  // Zero with probability zi, else Poisson.
  real zero_inflated_poisson_lpmf(int y, real mu, real zi) {
    if (y == 0) {
      return log_sum_exp(log(zi), log1m(zi) + poisson_lpmf(0 | mu));
    }
    return log1m(zi) + poisson_lpmf(y | mu);
  }
  int zero_inflated_poisson_rng(real mu, real zi) {
    return bernoulli_rng(zi) == 1 ? 0 : poisson_rng(mu);
  }";

/// The negative binomial distribution with excess zeros.
pub const ZERO_INFLATED_NEGBINOMIAL: &str = "
  // Zero with probability zi, else negative binomial.
  real zero_inflated_negbinomial_lpmf(int y, real mu, real shape, real zi) {
    if (y == 0) {
      return log_sum_exp(log(zi), log1m(zi) + neg_binomial_2_lpmf(0 | mu, shape));
    }
    return log1m(zi) + neg_binomial_2_lpmf(y | mu, shape);
  }
  int zero_inflated_negbinomial_rng(real mu, real shape, real zi) {
    return bernoulli_rng(zi) == 1 ? 0 : neg_binomial_2_rng(mu, shape);
  }";

/// The binomial distribution with excess zeros.
pub const ZERO_INFLATED_BINOMIAL: &str = "
  // Zero with probability zi, else binomial.
  real zero_inflated_binomial_lpmf(int y, int trials, real mu, real zi) {
    if (y == 0) {
      return log_sum_exp(log(zi), log1m(zi) + binomial_lpmf(0 | trials, mu));
    }
    return log1m(zi) + binomial_lpmf(y | trials, mu);
  }
  int zero_inflated_binomial_rng(int trials, real mu, real zi) {
    return bernoulli_rng(zi) == 1 ? 0 : binomial_rng(trials, mu);
  }";

/// The beta distribution with excess zeros.
pub const ZERO_INFLATED_BETA: &str = "
  // Zero with probability zi, else beta by mean and precision.
  real zero_inflated_beta_lpdf(real y, real mu, real phi, real zi) {
    if (y == 0) {
      return log(zi);
    }
    return log1m(zi) + beta_proportion_lpdf(y | mu, phi);
  }
  real zero_inflated_beta_rng(real mu, real phi, real zi) {
    return bernoulli_rng(zi) == 1 ? 0 : beta_proportion_rng(mu, phi);
  }";

/// The beta distribution with excess zeros and ones.
pub const ZERO_ONE_INFLATED_BETA: &str = "
  // At an end with probability zoi, of these at 1 with probability coi, else beta by mean and precision.
  real zero_one_inflated_beta_lpdf(real y, real mu, real phi, real zoi, real coi) {
    if (y == 0) {
      return log(zoi) + log1m(coi);
    }
    if (y == 1) {
      return log(zoi) + log(coi);
    }
    return log1m(zoi) + beta_proportion_lpdf(y | mu, phi);
  }
  real zero_one_inflated_beta_rng(real mu, real phi, real zoi, real coi) {
    return bernoulli_rng(zoi) == 1 ? bernoulli_rng(coi) : beta_proportion_rng(mu, phi);
  }";

/// A hurdle distribution of zeros and positive Poisson counts.
pub const HURDLE_POISSON: &str = "
  // Zero with probability hu, else Poisson above zero.
  real hurdle_poisson_lpmf(int y, real mu, real hu) {
    if (y == 0) {
      return log(hu);
    }
    return log1m(hu) + poisson_lpmf(y | mu) - log1m_exp(-mu);
  }
  int hurdle_poisson_rng(real mu, real hu) {
    if (bernoulli_rng(hu) == 1) {
      return 0;
    }
    // One more than a Poisson process has after its first event, which falls before time mu.
    real first = -log1m(uniform_rng(0, 1) * -expm1(-mu));
    return 1 + (mu > first ? poisson_rng(mu - first) : 0);
  }";

/// A hurdle distribution of zeros and positive negative binomial counts.
pub const HURDLE_NEGBINOMIAL: &str = "
  // Zero with probability hu, else negative binomial above zero.
  real hurdle_negbinomial_lpmf(int y, real mu, real shape, real hu) {
    if (y == 0) {
      return log(hu);
    }
    return log1m(hu) + neg_binomial_2_lpmf(y | mu, shape) - log1m_exp(neg_binomial_2_lpmf(0 | mu, shape));
  }
  int hurdle_negbinomial_rng(real mu, real shape, real hu) {
    if (bernoulli_rng(hu) == 1) {
      return 0;
    }
    int y = 0;
    int tries = 0;
    while (y == 0 && tries < 100000) {
      y = neg_binomial_2_rng(mu, shape);
      tries += 1;
    }
    return max(y, 1);
  }";

/// A hurdle distribution of zeros and gamma values.
pub const HURDLE_GAMMA: &str = "
  // Zero with probability hu, else gamma.
  real hurdle_gamma_lpdf(real y, real mu, real shape, real hu) {
    if (y == 0) {
      return log(hu);
    }
    return log1m(hu) + gamma_lpdf(y | shape, shape / mu);
  }
  real hurdle_gamma_rng(real mu, real shape, real hu) {
    return bernoulli_rng(hu) == 1 ? 0 : gamma_rng(shape, shape / mu);
  }";

/// A hurdle distribution of zeros and log-normal values.
pub const HURDLE_LOGNORMAL: &str = "
  // Zero with probability hu, else log-normal.
  real hurdle_lognormal_lpdf(real y, real mu, real sigma, real hu) {
    if (y == 0) {
      return log(hu);
    }
    return log1m(hu) + lognormal_lpdf(y | mu, sigma);
  }
  real hurdle_lognormal_rng(real mu, real sigma, real hu) {
    return bernoulli_rng(hu) == 1 ? 0 : lognormal_rng(mu, sigma);
  }";

/// Stopping-ratio probabilities of ordered categories. The category is the step at which a sequence of decisions stops.
pub const SRATIO: &str = "
  // Log probabilities of the categories: each threshold is a decision to stop.
  vector sratio_log(real mu, vector thresholds) {
    int C = num_elements(thresholds) + 1;
    vector[C] lp = rep_vector(0, C);
    for (c in 1 : C - 1) {
      real stop = thresholds[c] - mu;
      lp[c] += log_inv_logit(stop);
      for (d in c + 1 : C) {
        lp[d] += log_inv_logit(-stop);
      }
    }
    return lp;
  }
  real sratio_lpmf(int y, real mu, vector thresholds) {
    return sratio_log(mu, thresholds)[y];
  }
  int sratio_rng(real mu, vector thresholds) {
    return categorical_logit_rng(sratio_log(mu, thresholds));
  }";

/// Continuation-ratio probabilities of ordered categories. They are stopping ratios in reverse order.
pub const CRATIO: &str = "
  // Log probabilities of the categories: each threshold is a decision to go on.
  vector cratio_log(real mu, vector thresholds) {
    int C = num_elements(thresholds) + 1;
    vector[C] lp = rep_vector(0, C);
    for (c in 1 : C - 1) {
      real go = mu - thresholds[c];
      lp[c] += log_inv_logit(-go);
      for (d in c + 1 : C) {
        lp[d] += log_inv_logit(go);
      }
    }
    return lp;
  }
  real cratio_lpmf(int y, real mu, vector thresholds) {
    return cratio_log(mu, thresholds)[y];
  }
  int cratio_rng(real mu, vector thresholds) {
    return categorical_logit_rng(cratio_log(mu, thresholds));
  }";

/// Adjacent-category probabilities of ordered categories.
pub const ACAT: &str = "
  // Logits of the categories: each threshold is between two neighbours.
  vector acat_logits(real mu, vector thresholds) {
    int C = num_elements(thresholds) + 1;
    vector[C] logits;
    logits[1] = 0;
    for (c in 2 : C) {
      logits[c] = logits[c - 1] + (mu - thresholds[c - 1]);
    }
    return logits;
  }
  real acat_lpmf(int y, real mu, vector thresholds) {
    return categorical_logit_lpmf(y | acat_logits(mu, thresholds));
  }
  int acat_rng(real mu, vector thresholds) {
    return categorical_logit_rng(acat_logits(mu, thresholds));
  }";

/// The density of the Cox model. All hazards in this model are proportional to a baseline hazard.
pub const COX: &str = "
  // Proportional hazards: relative hazard, baseline hazard and its integral.
  real cox_lpdf(real y, real mu, real bhaz, real cbhaz) {
    return log(bhaz) + log(mu) - cbhaz * mu;
  }
  real cox_lccdf(real y, real mu, real bhaz, real cbhaz) {
    return -cbhaz * mu;
  }
  real cox_lcdf(real y, real mu, real bhaz, real cbhaz) {
    return log1m_exp(-cbhaz * mu);
  }";

/// The distribution of the time that a diffusion takes to reach one of two boundaries. A random time is a sum of exit
/// times from intervals around the current position of the path, until the path reaches a boundary (Tuerlinckx, Maris,
/// Ratcliff and De Boeck, Behavior Research Methods 33, 2001). Each exit time is drawn by rejection: an exponential
/// time with the slowest rate is accepted with a probability that depends on the other terms of the series (Feller, An
/// introduction to probability theory II, chapter X.5). An exit time is below 0.02 with a probability of less than
/// 1e-8.
pub const WIENER: &str = "
  // A diffusion with drift mu and boundaries bs apart, from the share bias, after the time ndt; dec: 1 for the upper boundary.
  real wiener_diffusion_lpdf(real y, int dec, real mu, real bs, real ndt, real bias) {
    if (dec == 1) {
      return wiener_lpdf(y | bs, ndt, bias, mu);
    }
    return wiener_lpdf(y | bs, ndt, 1 - bias, -mu);
  }
  real wiener_diffusion_rng(real mu, real bs, real ndt, real bias) {
    real time = ndt;
    real place = bias * bs;
    while (place > 1e-9 * bs && place < (1 - 1e-9) * bs) {
      real r = fmin(place, bs - place);
      real rate = square(pi()) / 8 + square(mu * r) / 2;
      real t = 0;
      int found = 0;
      while (found == 0) {
        t = exponential_rng(rate);
        real kept = t > 0.02;
        real term = kept;
        int k = 1;
        while (abs(term) > 1e-9) {
          term = (k % 2 == 0 ? 1 : -1) * (2 * k + 1) * exp(-0.5 * k * (k + 1) * square(pi()) * t);
          kept += term;
          k += 1;
        }
        found = uniform_rng(0, 1) < kept;
      }
      time += square(r) * t;
      place += bernoulli_rng(inv_logit(2 * mu * r)) == 1 ? r : -r;
    }
    return time;
  }";
