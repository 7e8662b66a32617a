"""Writes rows of a logistic regression to Parquet files, for the book's figures on records that exceed memory.

    python tools/logistic_rows.py FOLDER --rows 20000000
    jensen fit FOLDER/logistic.stan FOLDER/shared.json --exchangeable N --records FOLDER ...

Row n has eight standard normal predictors x[n], a list of float32. y[n] is Bernoulli with logit 0.3 + x[n]'b, where b is
1, -1/2, 1/3, -1/4, .... Each file has 10^6 rows and Snappy compression. The script holds one file in memory.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PREDICTORS, PER_FILE = 8, 1_000_000

PROGRAM = """data {
  int<lower=0> N;
  int<lower=0> K;
  array[N] vector[K] x;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  real alpha;
  vector[K] beta;
}
model {
  alpha ~ normal(0, 5);
  beta ~ normal(0, 2.5);
  for (n in 1:N) y[n] ~ bernoulli_logit(alpha + dot_product(x[n], beta));
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    (asked.folder / "logistic.stan").write_text(PROGRAM)
    (asked.folder / "shared.json").write_text(json.dumps({"K": PREDICTORS}))
    beta = np.array([(-1) ** k / (k + 1) for k in range(PREDICTORS)], dtype=np.float32)
    for at, first in enumerate(range(0, asked.rows, PER_FILE)):
        rng = np.random.default_rng([asked.seed, at])
        rows = min(PER_FILE, asked.rows - first)
        x = rng.standard_normal((rows, PREDICTORS), dtype=np.float32)
        y = rng.random(rows, dtype=np.float32) < 1 / (1 + np.exp(-(np.float32(0.3) + x @ beta)))
        offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * PREDICTORS)
        lists = pa.ListArray.from_arrays(offsets, pa.array(x.ravel()))
        table = pa.table({"x": lists, "y": pa.array(y.astype(np.int8))})
        pq.write_table(table, asked.folder / f"part-{at:03}.parquet")


if __name__ == "__main__":
    main()
