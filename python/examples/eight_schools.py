"""Eight schools, compared with the known posterior."""

import json
from pathlib import Path

import jensen

ROOT = Path(__file__).resolve().parents[2]
SCHOOLS = ROOT / "data" / "eight_schools"

fit = jensen.fit(SCHOOLS / "eight_schools.stan", SCHOOLS / "eight_schools.json", seed=1)
print(f"{fit.verdict}, {'refined' if fit.refined else 'as fitted'}: {len(fit['mu'])} draws")

# Means and standard deviations of 10 000 draws of a long run of Stan's sampler (posteriordb).
known = json.loads((ROOT / "models" / "references.json").read_text())
known = next(entry["parameters"] for entry in known if entry["model"] == "eight_schools_noncentred")

summary = fit.summary()
print("            mean   known     sd   known")
for name, (mean, sd) in known.items():
    found = summary.loc[name]
    print(f"{name:9} {found['mean']:6.2f}  {mean:6.2f} {found['sd']:6.2f}  {sd:6.2f}")
    # A trusted fit promises an error of at most a tenth of a standard deviation.
    assert abs(found["mean"] - mean) < 0.1 * sd
    assert abs(found["sd"] - sd) < 0.08 * sd
