"""Records in Parquet files, which the fit reads block by block."""

import json

import jensen
import numpy as np
import pytest

parquet = pytest.importorskip("pyarrow.parquet")
arrow = pytest.importorskip("pyarrow")

MODEL = """
data {
  int<lower=0> N; int<lower=1> J; int K;
  vector[N] y; array[N] row_vector[K] x; array[N] int<lower=1, upper=J> g;
}
parameters { real alpha; vector[K] beta; vector[J] a; real<lower=0> sigma; }
model {
  alpha ~ normal(0, 2); beta ~ normal(0, 2); a ~ normal(0, 1); sigma ~ exponential(1);
  for (n in 1:N) y[n] ~ normal(alpha + x[n] * beta + a[g[n]], sigma);
}
"""
SETTINGS = {"exchangeable": "N", "family": "meanfield", "batch": 100, "seed": 3, "draws": 200, "max_iters": 600}


def write(folder, groups=("north", "south", "east"), rows=3000):
    rng = np.random.default_rng(1)
    folder.mkdir()
    x, g = rng.normal(size=(rows, 2)), rng.integers(0, 3, rows)
    effect = np.array([0.5, -0.5, 0.0])
    y = 1 + x @ [0.7, -0.3] + effect[g] + rng.normal(0, 0.5, rows)
    for at, part in enumerate(np.array_split(np.arange(rows), 3)):
        table = arrow.table(
            {
                "g": arrow.array([groups[k] for k in g[part]]).dictionary_encode(),
                "x": arrow.array(list(x[part].astype(np.float32))),
                "y": y[part],
            }
        )
        parquet.write_table(table, folder / f"part-{at}.parquet", row_group_size=170)
    codes = {name: 1 + sorted(groups).index(name) for name in groups}
    shared = {"J": 3}
    whole = {**shared, "N": rows, "K": 2, "y": y, "x": x.astype(np.float32), "g": [codes[groups[k]] for k in g]}
    return shared, whole


def means(fit):
    return {p["name"]: (p["mean"], p["sd"]) for p in fit.info["parameters"]}


def test_a_fit_equals_the_fit_of_data_in_memory(tmp_path):
    shared, whole = write(tmp_path / "rows")
    call = {**SETTINGS, "estimator": "joint-svrg"}
    read = jensen.fit(MODEL, shared, records=tmp_path / "rows", out=tmp_path / "fit", **call)
    held = jensen.fit(MODEL, whole, **call)
    for name, (mean, sd) in means(held).items():
        found = means(read)[name]
        assert abs(found[0] - mean) < 0.5 * sd and abs(np.log(found[1] / sd)) < 0.2, name
    again = jensen.fit(MODEL, shared, records=sorted((tmp_path / "rows").iterdir()), threads=1, **call)
    assert means(again) == means(read)
    # A short run is a prefix of a long one, and resumes from its checkpoint.
    short = {**call, "max_iters": 217}
    jensen.fit(MODEL, shared, records=tmp_path / "rows", out=tmp_path / "short", **short)
    resumed = jensen.resume(tmp_path / "short", max_iters=600)
    assert means(resumed) == means(read)
    settings = json.loads((tmp_path / "fit" / "run.json").read_text())
    assert str(tmp_path / "rows") in json.dumps(settings)


def test_an_unreadable_file_is_one_error_with_its_location(tmp_path):
    shared, _ = write(tmp_path / "rows")
    file = tmp_path / "rows" / "part-1.parquet"
    good = file.read_bytes()

    def refused(match, error=ValueError, **call):
        with pytest.raises(error, match=match):
            jensen.fit(MODEL, call.pop("data", shared), records=tmp_path / "rows", **{**SETTINGS, **call})
        file.write_bytes(good)

    def changed(name, values):
        table = parquet.read_table(file)
        at = table.column_names.index(name)
        parquet.write_table(table.set_column(at, name, [values(table[name].to_pylist())]), file)

    changed("y", lambda y: [*y[:700], float("nan"), *y[701:]])
    refused(r"part-1\.parquet`, row 701, column `y`: NaN")
    changed("x", lambda x: [*x[:30], [1.0], *x[31:]])
    refused(r"part-1\.parquet`, row 31, column `x`: a list whose length differs")
    changed("g", lambda g: ["west"] * len(g))
    refused(r"part-1\.parquet`, row 1: .*g\[1\]", error=jensen.StanError)
    file.write_bytes(good[: len(good) // 2])
    refused(r"part-1\.parquet` cannot be read as Parquet")
    refused("both the data and the records have `N`", data={**shared, "N": 3})
    refused("needs --exchangeable", exchangeable=None, batch=None)
    refused("joint-exact visits records from all blocks", estimator="joint-exact")
