"""Writes models/tables/latent/nuts.json and its tables: posteriors of latent Gaussian models with the default priors, by NUTS on Stan programs
of the same models (`pip install stanli numpy`). `python tools/oracle/latent_nuts.py models/tables/latent [NAME …]` from the repository's
root; models that are not named keep their entry, where they have one.

Responses with normal or t noise and columns are measured as (value - mean)/sd, as the fit does, and priors are for these: standard
deviations are exponential of rate -log(0.01)/3, of intrinsic fields the typical one; see the book's page on latent Gaussian models. What
is stored is in the tables' units: means and standard deviations of the draws, of hyperparameters of the middle 99.9 % as the fit tells
them, with the standard error of each mean."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import stanli

RATE = -np.log(0.01) / 3
RHO_RATE = -np.log(0.5) / np.sqrt(-np.log(1 - 0.25))
folder = Path(sys.argv[1])
wanted_names = sys.argv[2:]
stored = {e["name"]: e for e in json.loads((folder / "nuts.json").read_text())} if (folder / "nuts.json").exists() else {}
out: list[dict] = []


def table(name: str, columns: dict[str, np.ndarray]) -> str:
    """Writes a CSV file with all digits."""
    rows = zip(*columns.values(), strict=True)
    text = ",".join(columns) + "\n" + "".join(",".join(repr(v.item()) for v in row) + "\n" for row in rows)
    (folder / f"nuts_{name}.csv").write_text(text)
    return f"nuts_{name}.csv"


def measured(column: np.ndarray) -> tuple[np.ndarray, float, float]:
    """A column in standard deviations from its mean, with both."""
    return (column - column.mean()) / column.std(), float(column.mean()), float(column.std())


def sample(name: str, program: str, data: dict, request: dict, wanted: dict, where: str) -> None:
    """Means and standard deviations of functions of a program's draws, by the names that Jensen gives them."""
    if name in stored and name not in wanted_names:
        out.append(stored[name])
        return
    given = {k: (v.tolist() if isinstance(v, np.ndarray) else v) for k, v in {"rate": RATE, **data}.items()}
    model = stanli.Model(stan_code=program, data=json.dumps(given))
    fit = model.sample(chains=4, samples=3000, warmup=1000, seed=3, delta=0.95, parallel_chains=1, refresh=0)
    known = {}
    for own, theirs in wanted.items():
        draws = np.asarray(fit[theirs] if isinstance(theirs, str) else theirs(fit), dtype=float).ravel()
        # The standard error by means of batches of 250 draws.
        batches = draws.reshape(-1, 250).mean(axis=1)
        if own.startswith("h:"):
            low, high = np.quantile(draws, [0.0005, 0.9995])
            draws = draws[(low <= draws) & (draws <= high)]
        known[own] = [float(draws.mean()), float(draws.std()), float(batches.std(ddof=1) / np.sqrt(len(batches)))]
    out.append({"name": name, "table": where, "request": request, "posterior": known})
    stored[name] = out[-1]
    (folder / "nuts.json").write_text(json.dumps(list(stored.values()), indent=1) + "\n")
    print(name, {k: [round(x, 4) for x in v] for k, v in known.items()}, flush=True)


def at_zero(fit) -> tuple[np.ndarray, np.ndarray]:
    """Variance of a group's level where the column is 0, and its correlation with the slope."""
    level, slope = fit["s[1]"], fit["s[2]"] * -middle_s / spread_s
    variance = level**2 + slope**2 + 2 * fit["rho"] * level * slope
    return variance, (fit["rho"] * level + slope) / np.sqrt(variance)


# Groups with binary rows.
rng = np.random.default_rng(11)
group = np.repeat(np.arange(30), 8)
x = rng.normal(0, 1, 240)
eta = -0.3 + 0.8 * x + rng.normal(0, 0.9, 30)[group]
y = (rng.uniform(size=240) < 1 / (1 + np.exp(-eta))).astype(int)
GROUPS = """
data {{ int N; int G; vector[N] x; array[N] int g; {data} real rate; }}
parameters {{ real a; real b; real<lower=0> s; vector[G] z; {own} }}
transformed parameters {{ vector[G] u = s * z; }}
model {{
  vector[N] eta = a + b * x + u[g];
  a ~ normal(0, sqrt(1000)); b ~ normal(0, 2.5); s ~ exponential(rate); z ~ std_normal();
  {law}
}}
generated quantities {{ real v = s^2; {more} }}
"""


def effects(x: np.ndarray) -> dict:
    """Level and slope in the units of the column."""
    _, mean, sd = measured(x)
    return {"intercept": lambda f: f["a"] - f["b"] * mean / sd, "fixed[x]": lambda f: f["b"] / sd}


sample(
    "glmm",
    GROUPS.format(data="array[N] int y;", own="", law="y ~ bernoulli_logit(eta);", more=""),
    {"N": 240, "G": 30, "x": measured(x)[0], "g": group + 1, "y": y},
    {"likelihood": "bernoulli", "prior": "intercept() + fixed(x) + iid(on=group)", "response": "y"},
    {**effects(x), "iid[0]": "u[1]", "iid[7]": "u[8]", "h:iid.variance": "v"},
    table("glmm", {"x": x, "group": group, "y": y}),
)

# Few groups with normal noise.
rng = np.random.default_rng(12)
group = np.repeat(np.arange(5), 6)
x = rng.normal(20, 5, 30)
y = 300 + 12 * x + rng.normal(0, 60, 5)[group] + rng.normal(0, 40, 30)
own, mean, sd = measured(y)
_, middle, spread = measured(x)
sample(
    "few_groups",
    GROUPS.format(data="vector[N] y;", own="real<lower=0> noise;", law="noise ~ exponential(rate); y ~ normal(eta, noise);", more="real w = noise^2;"),
    {"N": 30, "G": 5, "x": measured(x)[0], "g": group + 1, "y": own},
    {"likelihood": "gaussian", "prior": "intercept() + fixed(x) + iid(on=group)", "response": "y"},
    {
        "intercept": lambda f: mean + sd * (f["a"] - f["b"] * middle / spread), "fixed[x]": lambda f: sd * f["b"] / spread,
        "iid[0]": lambda f: sd * f["u[1]"], "iid[3]": lambda f: sd * f["u[4]"],
        "h:iid.variance": lambda f: sd**2 * f["v"], "h:likelihood.variance": lambda f: sd**2 * f["w"],
    },
    table("few_groups", {"x": x, "group": group, "y": y}),
)

# Counts of groups that vary more than Poisson's.
rng = np.random.default_rng(13)
group = np.repeat(np.arange(12), 10)
x = rng.normal(0, 1, 120)
y = rng.poisson(np.exp(1 + 0.4 * x + rng.normal(0, 0.5, 12)[group]) * rng.gamma(2, 0.5, 120))
sample(
    "negative_binomial",
    GROUPS.format(
        data="array[N] int y;", own="real<lower=0> frailty;", law="frailty ~ exponential(rate); y ~ neg_binomial_2_log(eta, frailty^-2);",
        more="real size = frailty^-2;",
    ),
    {"N": 120, "G": 12, "x": measured(x)[0], "g": group + 1, "y": y},
    {"likelihood": "negative-binomial", "prior": "intercept() + fixed(x) + iid(on=group)", "response": "y"},
    {**effects(x), "iid[0]": "u[1]", "iid[7]": "u[8]", "h:iid.variance": "v", "h:likelihood.size": "size"},
    table("negative_binomial", {"x": x, "group": group, "y": y}),
)

# Heavy tails.
rng = np.random.default_rng(14)
group = np.repeat(np.arange(8), 15)
x = rng.normal(0, 1, 120)
y = 2 + 0.7 * x + rng.normal(0, 0.6, 8)[group] + 0.8 * rng.standard_t(3, 120)
own, shift, unit = measured(y)
_, centre, width = measured(x)
sample(
    "student",
    GROUPS.format(
        data="vector[N] y;", own="real<lower=0> scale; real<lower=0> degrees;",
        law="scale ~ exponential(rate); degrees ~ gamma(2, 0.1); y ~ student_t(degrees, eta, scale);", more="",
    ),
    {"N": 120, "G": 8, "x": measured(x)[0], "g": group + 1, "y": own},
    {"likelihood": "student-t", "prior": "intercept() + fixed(x) + iid(on=group)", "response": "y"},
    {
        "intercept": lambda f: shift + unit * (f["a"] - f["b"] * centre / width), "fixed[x]": lambda f: unit * f["b"] / width,
        "iid[0]": lambda f: unit * f["u[1]"], "h:iid.variance": lambda f: unit**2 * f["v"],
        "h:likelihood.scale": lambda f: unit * f["scale"], "h:likelihood.degrees": "degrees",
    },
    table("student", {"x": x, "group": group, "y": y}),
)

# Positive numbers.
rng = np.random.default_rng(21)
group = np.repeat(np.arange(10), 8)
x = rng.normal(0, 1, 80)
y = np.exp(1 + 0.5 * x + rng.normal(0, 0.5, 10)[group]) * rng.gamma(3, 1 / 3, 80)
sample(
    "gamma",
    GROUPS.format(
        data="vector[N] y;", own="real<lower=0> spread;", law="spread ~ exponential(rate); y ~ gamma(spread^-2, spread^-2 * exp(-eta));",
        more="real shape = spread^-2;",
    ),
    {"N": 80, "G": 10, "x": measured(x)[0], "g": group + 1, "y": y},
    {"likelihood": "gamma", "prior": "intercept() + fixed(x) + iid(on=group)", "response": "y"},
    {**effects(x), "iid[0]": "u[1]", "iid[7]": "u[8]", "h:iid.variance": "v", "h:likelihood.shape": "shape"},
    table("gamma", {"x": x, "group": group, "y": y}),
)

# Autoregressions, of counts and of the logarithm of a variance.
AUTOREGRESSION = """
data {{ int N; {data} real rate; real rho_rate; }}
parameters {{ real a; real<lower=0> s; real<lower=-1, upper=1> rho; vector[N] z; }}
transformed parameters {{
  vector[N] u;
  u[1] = s * z[1];
  for (t in 2:N) u[t] = rho * u[t - 1] + s * sqrt(1 - rho^2) * z[t];
}}
model {{
  real mu = sqrt(-log1m(rho^2));
  a ~ normal(0, sqrt(1000)); s ~ exponential(rate); z ~ std_normal();
  target += -rho_rate * mu + log(abs(rho)) - log(mu) - log1m(rho^2);
  {law}
}}
generated quantities {{ real v = s^2; }}
"""
rng = np.random.default_rng(15)
n = 120
field = np.zeros(n)
for t in range(1, n):
    field[t] = 0.8 * field[t - 1] + rng.normal(0, 0.4)
y = rng.poisson(np.exp(1.0 + field))
series = {"intercept": "a", "ar1[10]": "u[11]", "ar1[60]": "u[61]", "h:ar1.rho": "rho", "h:ar1.variance": "v"}
sample(
    "ar1",
    AUTOREGRESSION.format(data="array[N] int y;", law="y ~ poisson_log(a + u);"),
    {"N": n, "y": y, "rho_rate": RHO_RATE},
    {"likelihood": "poisson", "prior": "intercept() + ar1(on=t)", "response": "y"},
    series,
    table("ar1", {"t": np.arange(n), "y": y}),
)
rng = np.random.default_rng(16)
n = 250
field = np.zeros(n)
for t in range(1, n):
    field[t] = 0.95 * field[t - 1] + rng.normal(0, 0.25)
y = np.exp(0.5 * (field - 1)) * rng.normal(size=n)
sample(
    "volatility",
    AUTOREGRESSION.format(data="vector[N] y;", law="y ~ normal(0, exp(0.5 * (a + u)));"),
    {"N": n, "y": y, "rho_rate": RHO_RATE},
    {"likelihood": "stochastic-volatility", "prior": "intercept() + ar1(on=t)", "response": "y"},
    series,
    table("volatility", {"t": np.arange(n), "y": y}),
)

# Levels and slopes of groups, with a correlation; the level is that at the mean of the column.
rng = np.random.default_rng(22)
group = np.repeat(np.arange(12), 8)
x = rng.uniform(0, 10, 96)
both = rng.normal(size=(12, 2)) @ np.array([[20.0, 2.0], [0.0, 4.0]])
y = 250 + both[group, 0] + (10 + both[group, 1]) * x + rng.normal(0, 25, 96)
inside, level_s, scale_s = measured(y)
middle_s, spread_s = measured(x)[1:]
slope = scale_s / spread_s
sample(
    "slopes",
    """
data { int N; int G; vector[N] x; vector[N] y; array[N] int g; real rate; }
parameters { real a; real b; real<lower=0> noise; vector<lower=0>[2] s; real<lower=-1, upper=1> rho; matrix[2, G] z; }
transformed parameters {
  row_vector[G] u = s[1] * z[1];
  row_vector[G] w = s[2] * (rho * z[1] + sqrt(1 - rho^2) * z[2]);
}
model {
  a ~ normal(0, sqrt(1000)); b ~ normal(0, 2.5); s ~ exponential(rate); noise ~ exponential(rate); to_vector(z) ~ std_normal();
  y ~ normal(a + b * x + to_vector(u[g]) + to_vector(w[g]) .* x, noise);
}
generated quantities { real v = s[1]^2; real v2 = s[2]^2; real v3 = noise^2; }
""",
    {"N": 96, "G": 12, "x": measured(x)[0], "g": group + 1, "y": inside},
    {"likelihood": "gaussian", "prior": "intercept() + fixed(x) + iid(on=group, by=(1, x))", "response": "y"},
    {
        "intercept": lambda f: level_s + scale_s * (f["a"] - f["b"] * middle_s / spread_s), "fixed[x]": lambda f: slope * f["b"],
        "iid[0,1]": lambda f: scale_s * f["u[1]"], "iid[7,x]": lambda f: slope * f["w[8]"],
        "h:iid[1].variance": lambda f: scale_s**2 * f["v"], "h:iid[x].variance": lambda f: slope**2 * f["v2"], "h:iid[1,x].cor": "rho",
        "h:likelihood.variance": lambda f: scale_s**2 * f["v3"],
        "h:iid[1 at x=0].variance": lambda f: scale_s**2 * at_zero(f)[0], "h:iid[1 at x=0,x].cor": lambda f: at_zero(f)[1],
    },
    table("slopes", {"x": x, "group": group, "y": y}),
)

# Gaussian processes on one column, without a level.
PROCESS = """
data {{ int N; array[N] real x; {data} real rate; real length_rate; }}
parameters {{ real<lower=0> s; real<lower=0> length; vector[N] z; {own} }}
transformed parameters {{
  vector[N] u = cholesky_decompose(add_diag({kernel}(x, s, length), 1e-9)) * z;
}}
model {{
  s ~ exponential(rate); z ~ std_normal();
  target += log(0.5 * length_rate) - 1.5 * log(length) - length_rate / sqrt(length);
  {law}
}}
generated quantities {{ real v = s^2; {more} }}
"""
LENGTH_RATE = -np.log(0.05) * np.sqrt(0.1)
rng = np.random.default_rng(17)
x = np.sort(rng.uniform(0, 10, 40))
y = 5 + 3 * np.sin(x) + rng.normal(0, 1, 40)
level_y, scale_y = measured(y)[1:]
scale_x = measured(x)[2]
sample(
    "gp",
    PROCESS.format(
        data="vector[N] y;", own="real<lower=0> noise;", kernel="gp_exp_quad_cov", law="noise ~ exponential(rate); y ~ normal(u, noise);",
        more="real w = noise^2;",
    ),
    {"N": 40, "x": measured(x)[0], "y": measured(y)[0], "length_rate": LENGTH_RATE},
    {"likelihood": "gaussian", "prior": "gp(rbf, on=x)", "response": "y"},
    {
        **{f"eta[{k}]": lambda f, k=k: level_y + scale_y * f[f"u[{k}]"] for k in (1, 15, 30)},
        "h:gp.lengthscale": lambda f: scale_x * f["length"], "h:gp.variance": lambda f: scale_y**2 * f["v"],
        "h:likelihood.variance": lambda f: scale_y**2 * f["w"],
    },
    table("gp", {"x": x, "y": y}),
)
rng = np.random.default_rng(18)
x = np.sort(rng.uniform(0, 10, 50))
y = rng.poisson(np.exp(1 + 0.8 * np.sin(x)))
spread_x = measured(x)[2]
sample(
    "gp_counts",
    PROCESS.format(data="array[N] int y;", own="", kernel="gp_matern32_cov", law="y ~ poisson_log(u);", more=""),
    {"N": 50, "x": measured(x)[0], "y": y, "length_rate": LENGTH_RATE},
    {"likelihood": "poisson", "prior": "gp(matern32, on=x)", "response": "y"},
    {**{f"eta[{k}]": f"u[{k}]" for k in (1, 15, 30)}, "h:gp.lengthscale": lambda f: spread_x * f["length"], "h:gp.variance": "v"},
    table("gp_counts", {"x": x, "y": y}),
)


def scaled_root(structure: np.ndarray, flat: int) -> tuple[np.ndarray, np.ndarray, float]:
    """A root of the pseudo-inverse with a generalised variance of 1, its squares along the axes, and that variance without scaling."""
    values, vectors = np.linalg.eigh(structure)
    inverse = np.array([0.0] * flat + [1 / v for v in values[flat:]])
    scale = float(np.exp(np.mean(np.log((vectors**2) @ inverse))))
    return (vectors * np.sqrt(inverse / scale))[:, flat:], inverse / scale, scale


# Random walks beside a level, which is theirs alone where there is none.
WALK = """
data {{ int N; int K; int T; matrix[T, K] root; array[N] int t; {data} real rate; real typical; }}
parameters {{ real a; real<lower=0> s; vector[K] z; {own} }}
transformed parameters {{ vector[T] u = s * (root * z); }}
model {{
  a ~ normal(0, sqrt(1000)); s ~ exponential(rate); z ~ std_normal();
  {law}
}}
generated quantities {{ real tau = typical / s^2; {more} }}
"""
rng = np.random.default_rng(19)
t = np.repeat(np.arange(30), 3)
y = 50 + np.cumsum(rng.normal(0, 2, 30))[t] + rng.normal(0, 4, 90)
first = np.diff(np.eye(30), axis=0)
root, _, typical = scaled_root(first.T @ first, 1)
level_w, scale_w = measured(y)[1:]
sample(
    "rw1",
    WALK.format(data="vector[N] y;", own="real<lower=0> noise;", law="noise ~ exponential(rate); y ~ normal(a + u[t], noise);", more="real w = noise^2;"),
    {"N": 90, "K": 29, "T": 30, "root": root, "t": t + 1, "y": measured(y)[0], "typical": typical},
    {"likelihood": "gaussian", "prior": "intercept() + rw1(on=t)", "response": "y"},
    {
        "intercept": lambda f: level_w + scale_w * f["a"], "rw1[3]": lambda f: scale_w * f["u[4]"], "rw1[20]": lambda f: scale_w * f["u[21]"],
        "h:rw1.precision": lambda f: f["tau"] / scale_w**2, "h:likelihood.variance": lambda f: scale_w**2 * f["w"],
    },
    table("rw1", {"t": t, "y": y}),
)
rng = np.random.default_rng(20)
t = np.repeat(np.arange(25), 3)
y = rng.poisson(np.exp(1 + np.sin(t / 4)))
second = np.diff(np.eye(25), 2, axis=0)
root, _, typical = scaled_root(second.T @ second, 2)
# The slope is flat: rows read it with its own parameter.
slope = (np.arange(25) - 12.0) / 12
sample(
    "rw2",
    WALK.format(data="array[N] int y; vector[T] line;", own="real b;", law="y ~ poisson_log(a + u[t] + b * line[t]);", more="vector[T] all = u + b * line;"),
    {"N": 75, "K": 23, "T": 25, "root": root, "t": t + 1, "y": y, "typical": typical, "line": slope},
    {"likelihood": "poisson", "prior": "intercept() + rw2(on=t)", "response": "y"},
    {"intercept": "a", "rw2[3]": "all[4]", "rw2[20]": "all[21]", "h:rw2.precision": "tau"},
    table("rw2", {"t": t, "y": y}),
)

# Lip cancer in Scotland: intrinsic fields, with BYM2's share by its divergence.
rows = list(csv.DictReader(open("data/scotland/lip.csv")))
y = np.array([int(r["cases"]) for r in rows])
e = np.array([float(r["expected"]) for r in rows])
w = np.array([float(r["outdoor"]) for r in rows])
lines = [[int(v) for v in line.split()] for line in open("data/scotland/scotland.graph")][1:]
n = len(y)
laplacian = np.zeros((n, n))
for line in lines:
    laplacian[line[0] - 1, line[0] - 1] = max(line[1], 1)
    laplacian[line[0] - 1, [j - 1 for j in line[2:]]] = -1
# Every component scaled to a generalised variance of 1; nodes without neighbours are independent.
component = np.arange(n)
for _ in range(n):
    for line in lines:
        for j in line[2:]:
            component[line[0] - 1] = component[j - 1] = min(component[line[0] - 1], component[j - 1])
root, gammas = np.zeros((n, n)), []
for own in (np.flatnonzero(component == c) for c in np.unique(component)):
    if len(own) == 1:
        root[own, own] = 1
        gammas.append(1.0)
    else:
        part, gamma, _ = scaled_root(laplacian[np.ix_(own, own)], 1)
        root[np.ix_(own, own[1:])] = part
        gammas.extend(gamma)
gammas = np.array(gammas)


def distance(phi: float) -> float:
    """√(2 KLD)."""
    step = phi * (gammas - 1)
    return float(np.sqrt(np.sum(step - np.log1p(step))))


_, middle_w, spread_w = measured(w)
districts = {"likelihood": "poisson", "response": "cases", "exposure": "expected"}
regions = {"intercept": lambda f: f["a"] - f["b"] * middle_w / spread_w, "fixed[outdoor]": lambda f: f["b"] / spread_w}
sample(
    "bym2",
    """
data { int N; array[N] int y; vector[N] e; vector[N] x; matrix[N, N] root; vector[N] gamma; real rate; real phi_rate; }
parameters { real a; real b; real<lower=0> s; real<lower=0, upper=1> phi; vector[N] v; vector[N] z; }
transformed parameters { vector[N] u = s * (sqrt(1 - phi) * v + sqrt(phi) * (root * z)); }
model {
  vector[N] step = phi * (gamma - 1);
  real d = sqrt(sum(step - log1p(step)));
  real slope = sum((gamma - 1) .* step ./ (1 + step)) / (2 * d);
  a ~ normal(0, sqrt(1000)); b ~ normal(0, 2.5); s ~ exponential(rate); v ~ std_normal(); z ~ std_normal();
  target += -phi_rate * d + log(slope);
  y ~ poisson_log(log(e) + a + b * x + u);
}
generated quantities { real tau = 1 / s^2; }
""",
    {"N": n, "y": y, "e": e, "x": measured(w)[0], "root": root, "gamma": gammas, "phi_rate": -np.log(1 / 3) / distance(0.5)},
    {**districts, "prior": "intercept() + fixed(outdoor) + bym2(graph=data/scotland/scotland.graph, on=district)"},
    {**regions, "bym2[1]": "u[1]", "bym2[30]": "u[30]", "h:bym2.phi": "phi", "h:bym2.precision": "tau"},
    "../../../data/scotland/lip.csv",
)
(folder / "nuts.json").write_text(json.dumps(out, indent=1) + "\n")
