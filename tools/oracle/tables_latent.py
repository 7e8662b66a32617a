"""Writes models/tables/latent: small tables in the form in which users have them, with effects from least squares or from the generalised
linear models of statsmodels.

    python tools/oracle/tables_latent.py models/tables/latent

The script needs numpy and statsmodels.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import statsmodels.api as sm

rng = np.random.default_rng(20261128)
folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
cases = []


def table(name: str, columns: dict[str, np.ndarray]) -> None:
    """Writes a CSV file with all digits."""
    rows = zip(*(np.asarray(c, dtype=float) for c in columns.values()), strict=True)
    text = ",".join(columns) + "\n" + "".join(",".join(repr(float(x)) for x in row) + "\n" for row in rows)
    (folder / f"{name}.csv").write_text(text)


def case(name: str, likelihood: str, prior: str, **more: object) -> None:
    """Adds a case on the table `name` or, if given, `table`."""
    request = {"likelihood": likelihood, "prior": prior, "response": "y", **more.pop("request", {})}  # type: ignore[dict-item]
    cases.append({"name": name, "table": f"{more.pop('table', name)}.csv", "request": request, **more})


def effects(model, names: list[str]) -> dict[str, list[float]]:
    """Estimates and standard errors of a fitted model of statsmodels."""
    return {n: [float(m), float(s)] for n, m, s in zip(names, model.params, model.bse, strict=True)}


def line(name: str, columns: dict[str, np.ndarray], y: np.ndarray, **more: object) -> None:
    """Adds a regression on all columns, with the answers of least squares."""
    table(name, {**columns, "y": y})
    # Standardise the columns, because least squares loses digits with distant origins.
    x = np.column_stack(list(columns.values()))
    centre, scale = x.mean(axis=0), x.std(axis=0)
    fitted = sm.OLS(y, sm.add_constant((x - centre) / scale)).fit()
    known = {
        f"fixed[{c}]": [float(m / s), float(e / s)]
        for c, m, e, s in zip(columns, fitted.params[1:], fitted.bse[1:], scale, strict=True)
    }
    case(name, "gaussian", f"intercept() + fixed({', '.join(columns)})", effects=known, trusted=True, **more)


n = 80
area = rng.normal(110, 30, n).round(1)
rooms = np.clip((area / 30 + rng.normal(0, 1, n)).round(), 1, None)
price = (100_000 + 1_500 * area + 8_000 * rooms + rng.normal(0, 12_000, n)).round()
line("raw_scale", {"area": area, "rooms": rooms}, price)
line("millionths", {"area": area * 1e-6, "rooms": rooms}, price * 1e-6)
line("far_origin", {"area": area + 1e6 * area.std(), "rooms": rooms - 1e5}, price + 1e6 * price.std())
line("millions", {"area": area * 1e6, "rooms": rooms}, price * 1e6)
line("few_rows", {"area": area[:8]}, price[:8])
line("pure_noise", {"area": area, "rooms": rooms}, rng.normal(0, 1, n))
line("collinear", {"area": area, "metres": area + rng.normal(0, 3.0, n)}, price)

table("constant_column", {"area": area, "year": np.full(n, 2020.0), "copy": 3 * area - 7, "y": price})
whole = sm.OLS(price, sm.add_constant(area)).fit()
case(
    "constant_column", "gaussian", "intercept() + fixed(area, year, copy)",
    effects=effects(whole, ["intercept", "fixed[area]"]), trusted=True, says="Jensen omits",
)
case(
    "no_room", "gaussian", "intercept() + fixed(area, variance=1e-6)",
    table="constant_column", trusted=False, says="predicts better",
)
case("no_level", "gaussian", "gp(rbf, on=area)", table="raw_scale", trusted=True)

x = rng.normal(50, 10, 150)
tails = 3 + 0.2 * x + rng.standard_t(2, 150)
table("heavy_tails", {"x": x, "y": tails})
case("heavy_tails", "student-t", "intercept() + fixed(x)", near={"fixed[x]": 0.2}, trusted=True)

x = rng.normal(20_000, 5_000, 3000)
rare = rng.poisson(np.exp(-5.5 + 0.9 * (x - 20_000) / 5_000))
table("rare_counts", {"x": x, "y": rare})
glm = sm.GLM(rare, sm.add_constant(x), family=sm.families.Poisson()).fit()
case("rare_counts", "poisson", "intercept() + fixed(x)", effects=effects(glm, ["intercept", "fixed[x]"]), trusted=True)

table("no_counts", {"x": rng.normal(0, 1, 40), "y": np.zeros(40)})
case("no_counts", "poisson", "intercept() + fixed(x)", finite=True)

x = rng.normal(1e6, 1e3, 400)
yes = (rng.uniform(size=400) < 1 / (1 + np.exp(-0.5 - 1.2 * (x - 1e6) / 1e3))).astype(float)
table("yes_or_no", {"x": x, "y": yes})
glm = sm.GLM(yes, sm.add_constant((x - 1e6) / 1e3), family=sm.families.Binomial()).fit()
known = {"fixed[x]": [float(glm.params[1] / 1e3), float(glm.bse[1] / 1e3)]}
case("yes_or_no", "bernoulli", "intercept() + fixed(x)", effects=known, trusted=True)

x = np.linspace(-2, 2, 30)
table("separated", {"x": x, "y": (x > 0.1).astype(float)})
case("separated", "bernoulli", "intercept() + fixed(x)", finite=True)

group = np.repeat(np.arange(4.0), 6)
y = 1e4 * (5 + np.repeat(rng.normal(0, 1, 4), 6) + rng.normal(0, 1, 24))
table("few_groups", {"group": group, "y": y})
case("few_groups", "gaussian", "intercept() + iid(on=group)", trusted=True, integrated=True)
case("two_walks", "gaussian", "rw1(on=group) + iid() + intercept()", table="few_groups", finite=True)
case("fixed_and_groups", "gaussian", "intercept() + rw1(on=group) + rw2(on=group)", table="few_groups", finite=True)

(folder / "cases.json").write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n")
