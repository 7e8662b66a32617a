"""Writes models/tables/latent/nuts.json: posteriors of latent Gaussian models with the default priors, by NUTS on Stan programs of the same
models (`pip install stanli numpy`). `python tools/oracle/latent_nuts.py models/tables/latent` from the repository's root.

Standard deviations have exponential priors of rate -log(0.01)/3 on the scale that the models are fitted in; see the book's page on latent
Gaussian models."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import stanli

RATE = -np.log(0.01) / 3
folder = Path(sys.argv[1])
rng = np.random.default_rng(11)
out = []


def table(name: str, columns: dict[str, np.ndarray]) -> None:
    """Writes a CSV file with all digits."""
    rows = zip(*columns.values(), strict=True)
    text = ",".join(columns) + "\n" + "".join(",".join(repr(float(x)) for x in row) + "\n" for row in rows)
    (folder / f"{name}.csv").write_text(text)


def sample(name: str, program: str, data: dict, request: dict, wanted: dict[str, str], where: str) -> None:
    """Means and standard deviations of some variables of a program, by the names that Jensen gives them."""
    given = {k: (v.tolist() if isinstance(v, np.ndarray) else v) for k, v in data.items()}
    model = stanli.Model(stan_code=program, data=json.dumps(given))
    fit = model.sample(chains=4, samples=2000, warmup=1000, seed=3, delta=0.95, parallel_chains=1, refresh=0)
    known = {own: [float(fit[theirs].mean()), float(fit[theirs].std())] for own, theirs in wanted.items()}
    out.append({"name": name, "table": where, "request": request, "posterior": known})
    print(name, known, flush=True)


# Groups with binary rows.
group = np.repeat(np.arange(30), 8)
x = rng.normal(0, 1, 240)
eta = -0.3 + 0.8 * x + rng.normal(0, 0.9, 30)[group]
y = (rng.uniform(size=240) < 1 / (1 + np.exp(-eta))).astype(int)
table("nuts_glmm", {"x": x, "group": group, "y": y})
sample(
    "glmm",
    """
data { int N; int G; vector[N] x; array[N] int g; array[N] int<lower=0, upper=1> y; real rate; real sx; }
parameters { real a; real b; real<lower=0> s; vector[G] z; }
model {
  a ~ normal(0, sqrt(1000)); b ~ normal(0, 2.5 / sx); s ~ exponential(rate); z ~ std_normal();
  y ~ bernoulli_logit(a + b * x + s * z[g]);
}
generated quantities { real v = s^2; }
""",
    {"N": 240, "G": 30, "x": x, "g": group + 1, "y": y, "rate": RATE, "sx": float(x.std())},
    {"likelihood": "bernoulli", "prior": "intercept() + fixed(x) + iid(on=group)", "response": "y"},
    {"intercept": "a", "fixed[x]": "b"},
    "nuts_glmm.csv",
)

# An autoregression of counts.
n = 120
field = np.zeros(n)
for t in range(1, n):
    field[t] = 0.8 * field[t - 1] + rng.normal(0, 0.4)
y = rng.poisson(np.exp(1.0 + field))
table("nuts_ar1", {"t": np.arange(n), "y": y})
sample(
    "ar1",
    """
data { int N; array[N] int y; real rate; real rho_rate; }
parameters { real a; real<lower=0> s; real<lower=-1, upper=1> rho; vector[N] z; }
transformed parameters {
  vector[N] u;
  u[1] = s * z[1];
  for (t in 2:N) u[t] = rho * u[t - 1] + s * sqrt(1 - rho^2) * z[t];
}
model {
  real mu = sqrt(-log1m(rho^2));
  a ~ normal(0, sqrt(1000)); s ~ exponential(rate); z ~ std_normal();
  target += -rho_rate * mu + log(abs(rho)) - log(mu) - log1m(rho^2);
  y ~ poisson_log(a + u);
}
generated quantities { real v = s^2; }
""",
    {"N": n, "y": y, "rate": RATE, "rho_rate": float(-np.log(0.5) / np.sqrt(-np.log(1 - 0.25)))},
    {"likelihood": "poisson", "prior": "intercept() + ar1(on=t)", "response": "y"},
    {"intercept": "a", "ar1[10.0]": "u[11]", "ar1[60.0]": "u[61]", "h:ar1.rho": "rho", "h:ar1.variance": "v"},
    "nuts_ar1.csv",
)

# Lip cancer in Scotland: BYM2 with the prior of phi by its divergence.
rows = list(csv.DictReader(open("data/scotland/lip.csv")))
y = np.array([int(r["cases"]) for r in rows])
e = np.array([float(r["expected"]) for r in rows])
w = np.array([float(r["outdoor"]) for r in rows])
lines = [[int(v) for v in line.split()] for line in open("data/scotland/scotland.graph")][1:]
edges = [(line[0], j) for line in lines for j in line[2:] if line[0] < j]
n = len(y)
laplacian = np.zeros((n, n))
for i, j in edges:
    laplacian[i - 1, j - 1] = laplacian[j - 1, i - 1] = -1
alone = [line[0] - 1 for line in lines if line[1] == 0]
np.fill_diagonal(laplacian, [max(line[1], 1) for line in lines])
# Every component scaled to a generalised variance of 1; alone nodes are independent.
label = np.arange(n)
for _ in range(n):
    for i, j in edges:
        label[i - 1] = label[j - 1] = min(label[i - 1], label[j - 1])
root = np.zeros((n, n))
gammas = []
for component in np.unique(label):
    own = np.flatnonzero(label == component)
    values, vectors = np.linalg.eigh(laplacian[np.ix_(own, own)])
    inverse = np.array([1 / v if v > 1e-9 else 0 for v in values])
    scale = np.exp(np.mean(np.log((vectors**2) @ inverse)))
    root[np.ix_(own, own)] = vectors * np.sqrt(inverse / scale)
    gammas.extend(inverse / scale)
gammas = np.array(gammas)


def distance(phi: float) -> float:
    """√(2 KLD)."""
    step = phi * (gammas - 1)
    return float(np.sqrt(np.sum(step - np.log1p(step))))


phi_rate = -np.log(1 / 3) / distance(0.5)
sample(
    "bym2",
    """
data { int N; array[N] int y; vector[N] e; vector[N] x; matrix[N, N] root; vector[N] gamma; real rate; real phi_rate; real sx; }
parameters { real a; real b; real<lower=0> s; real<lower=0, upper=1> phi; vector[N] v; vector[N] z; }
transformed parameters { vector[N] u = s * (sqrt(1 - phi) * v + sqrt(phi) * (root * z)); }
model {
  vector[N] step = phi * (gamma - 1);
  real d = sqrt(sum(step - log1p(step)));
  real slope = sum((gamma - 1) .* step ./ (1 + step)) / (2 * d);
  a ~ normal(0, sqrt(1000)); b ~ normal(0, 2.5 / sx); s ~ exponential(rate); v ~ std_normal(); z ~ std_normal();
  target += -phi_rate * d + log(slope);
  y ~ poisson_log(log(e) + a + b * x + u);
}
generated quantities { real tau = 1 / s^2; }
""",
    {
        "N": n, "y": y, "e": e, "x": w, "root": root, "gamma": gammas, "rate": RATE,
        "phi_rate": float(phi_rate), "sx": float(w.std()),
    },
    {
        "likelihood": "poisson", "response": "cases", "exposure": "expected",
        "prior": "intercept() + fixed(outdoor) + bym2(graph=data/scotland/scotland.graph, on=district)",
    },
    {"intercept": "a", "fixed[outdoor]": "b", "h:bym2.phi": "phi", "h:bym2.precision": "tau"},
    "../../../data/scotland/lip.csv",
)
(folder / "nuts.json").write_text(json.dumps(out, indent=1) + "\n")
