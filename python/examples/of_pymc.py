"""A model of PyMC."""

import json
from pathlib import Path

import arviz
import jensen
import pymc

file = Path(__file__).resolve().parents[2] / "data" / "eight_schools" / "eight_schools.json"
data = json.loads(file.read_text())

with pymc.Model(coords={"school": list("ABCDEFGH")}) as model:
    mu = pymc.Normal("mu", 0, 5)
    tau = pymc.HalfCauchy("tau", 5)
    effect = pymc.Normal("effect", 0, 1, dims="school")
    theta = pymc.Deterministic("theta", mu + tau * effect, dims="school")
    pymc.Normal("y", theta, data["sigma"], observed=data["y"], dims="school")

fit = jensen.from_pymc(model).fit(seed=1)
print(f"{fit.verdict}{' after refinement' if fit.refined else ''}: k̂ {fit.khat:.2f}")
assert fit.trusted

made = fit.to_arviz()
print(arviz.summary(made, var_names=["mu", "tau", "theta"], kind="stats"))
# PyMC's functions of draws accept these draws.
pymc.compute_log_likelihood(made, model=model, progressbar=False)
pymc.sample_posterior_predictive(made, model=model, extend_inferencedata=True, random_seed=1, progressbar=False)
print(f"expected log predictive density by leaving one out: {arviz.loo(made).elpd_loo:.1f}")
assert made["posterior_predictive"]["y"].shape == (1, 1000, 8)
