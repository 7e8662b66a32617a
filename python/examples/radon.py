"""A hierarchical model, from a data frame to plots of ArviZ."""

import json
from pathlib import Path

import arviz
import jensen
import matplotlib
import pandas

matplotlib.use("Agg")
ROOT = Path(__file__).resolve().parents[2]

# Each row is a home: its county, whether it was measured on the first floor, the soil's uranium, and log radon.
raw = json.loads((ROOT / "data" / "radon" / "radon.json").read_text())
homes = pandas.DataFrame({"county": raw["county"], "floor": raw["x"], "uranium": raw["u"], "radon": raw["y"]})

PROGRAM = """
data {
  int<lower=1> N;
  int<lower=1> J;
  array[N] int<lower=1, upper=J> county;
  vector[N] floor;
  vector[N] uranium;
  vector[N] radon;
}
parameters {
  real intercept;
  real b_floor;
  real b_uranium;
  real<lower=0> sd_county;
  real<lower=0> sd_home;
  vector<multiplier=sd_county>[J] effect;
}
transformed parameters {
  vector[N] expected = intercept + effect[county] + b_floor * floor + b_uranium * uranium;
}
model {
  intercept ~ normal(0, 10);
  b_floor ~ normal(0, 10);
  b_uranium ~ normal(0, 10);
  sd_county ~ normal(0, 1);
  sd_home ~ normal(0, 1);
  effect ~ normal(0, sd_county);
  radon ~ normal(expected, sd_home);
}
generated quantities {
  array[N] real radon_rep = normal_rng(expected, sd_home);
  vector[N] log_lik;
  for (n in 1:N) log_lik[n] = normal_lpdf(radon[n] | expected[n], sd_home);
}
"""

data = {name: homes[name] for name in homes} | {"N": len(homes), "J": homes["county"].max()}
fit = jensen.fit(PROGRAM, data, seed=1)
print(f"{fit.verdict}{' after refinement' if fit.refined else ''}: k̂ {fit.khat:.2f}, ELBO {fit.elbo:.1f} nats")
assert fit.trusted

made = fit.to_arviz(
    coords={"county": range(1, data["J"] + 1), "home": homes.index},
    dims={name: ["home"] for name in ("expected", "log_lik", "radon_rep", "radon")} | {"effect": ["county"]},
)
slopes = arviz.summary(made, var_names=["b_floor", "b_uranium", "sd_county"], kind="stats")
print(slopes)
# Basements have more radon than first floors, and uranium in the soil predicts a county's level.
assert slopes.loc["b_floor", "hdi_97%"] < 0 < slopes.loc["b_uranium", "hdi_3%"]

score = arviz.loo(made)
print(f"expected log predictive density by leaving one out: {score.elpd_loo:.0f} ± {score.se:.0f}")

arviz.plot_forest(made, var_names=["effect"], coords={"county": range(1, 21)}, combined=True, figsize=(7, 6))
matplotlib.pyplot.savefig("radon-counties.png", dpi=60, bbox_inches="tight")
arviz.plot_ppc(made, data_pairs={"radon": "radon_rep"}, num_pp_samples=100, random_seed=1)
matplotlib.pyplot.savefig("radon-predictive.png", dpi=60, bbox_inches="tight")
fit.report("radon.html")
