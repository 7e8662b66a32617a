"""Three untrustworthy fits, the reasons, and the remedies."""

import warnings

import jensen
import numpy as np

# The script prints the reasons against a fit.
warnings.simplefilter("ignore", jensen.TrustWarning)


def shown(title, fit):
    print(f"{title}: {'trusted' if fit.trusted else fit.warnings[-1]}\n")
    return fit


# No prior and no data: a posterior does not exist.
improper = shown("An improper posterior", jensen.fit("parameters { real x; } model { }"))
assert not improper.trusted

# A covariate separates the outcomes: the likelihood grows without bound along its coefficient.
SEPARATED = """
data { int<lower=0> N; vector[N] x; array[N] int<lower=0, upper=1> y; }
parameters { real a; real b; }
model { PRIOR y ~ bernoulli_logit(a + b * x); }
"""
x = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
data = {"N": 6, "x": x, "y": (x > 0).astype(int)}
separated = shown("Separated outcomes without a prior", jensen.fit(SEPARATED.replace("PRIOR", ""), data))
assert not separated.trusted
proper = shown("The same with a prior", jensen.fit(SEPARATED.replace("PRIOR", "a ~ normal(0, 2); b ~ normal(0, 2);"), data))
assert proper.trusted

# A mixture with exchangeable labels: the fit describes one of two equal modes.
MIXTURE = """
data { int<lower=0> N; vector[N] y; }
parameters { MEANS m; real<lower=0> s; }
model {
  m ~ normal(0, 5);
  s ~ lognormal(0, 0.5);
  for (n in 1:N) target += log_mix(0.4, normal_lpdf(y[n] | m[1], s), normal_lpdf(y[n] | m[2], s));
}
"""
rng = np.random.default_rng(1)
y = np.concatenate([rng.normal(-2, 1, size=24), rng.normal(2, 1, size=36)])
free = shown("A mixture", jensen.fit(MIXTURE.replace("MEANS", "vector[2]"), {"N": 60, "y": y}))
ordered = shown("The same with its means in order", jensen.fit(MIXTURE.replace("MEANS", "ordered[2]"), {"N": 60, "y": y}))
assert ordered.trusted
print(f"means {ordered['m'].mean(axis=0).round(1)}, distinguished by their order")
