"""Writes rows of a Gaussian mixture in shards, for the book's figure on mixtures by shards.

    python tools/mixture_rows.py FOLDER
    jensen mixture fit FOLDER/all.npy --components 20 --covariance diagonal --seed 1 --threads 1 --out OUT

and `fit_mixture("FOLDER/shards", 20, covariance="diagonal", seed=1, workers=2, out=…)`. The script writes a million rows of 8
columns from 20 components with diagonal covariances, once as eight files in `shards` and once as the file `all.npy`.
"""

import sys
from pathlib import Path

import numpy as np

COMPONENTS, COLUMNS, SHARDS, PER_SHARD = 20, 8, 8, 125_000


def main() -> None:
    folder = Path(sys.argv[1])
    shards = folder / "shards"
    shards.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    means = rng.normal(scale=6, size=(COMPONENTS, COLUMNS))
    sds = rng.uniform(0.5, 1.5, size=(COMPONENTS, COLUMNS))
    parts = []
    for shard in range(SHARDS):
        which = rng.integers(COMPONENTS, size=PER_SHARD)
        parts.append(means[which] + sds[which] * rng.normal(size=(PER_SHARD, COLUMNS)))
        np.save(shards / f"{shard}.npy", parts[-1])
    np.save(folder / "all.npy", np.concatenate(parts))


main()
