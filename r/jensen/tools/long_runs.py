"""Runs NUTS for long on the programs of long_runs.R, and writes the results to long_runs.csv.

    pip install stanli==0.24.0 numpy
    Rscript r/jensen/tools/long_runs.R FOLDER
    python r/jensen/tools/long_runs.py FOLDER [NAME ...]

A run has four chains, each with 1 000 transitions of warm-up and 5 000 draws. The script skips a model that is already in the table, unless
it is named. It does not store a run with an R-hat above 1.01.
"""

import argparse
import contextlib
import csv
import io
import math
import pathlib
import re
import sys
import time

import stanli

sys.path.append(str(pathlib.Path(__file__).parents[3] / "tools/peers"))
from regress import new_arrays  # noqa: E402

TABLE = pathlib.Path(__file__).with_name("long_runs.csv")
COLUMNS = ("model", "variable", "mean", "sd", "mcse", "ess")
# Columns of the sampler, and the log densities.
LEFT_OUT = re.compile(r"^(lp__|lprior|accept_stat__|stepsize__|treedepth__|n_leapfrog__|divergent__|energy__)$")


def sample(folder, name, delta):
    """Rows of the table, and the worst R-hat."""
    model = stanli.Model(stan_code=new_arrays((folder / f"{name}.stan").read_text()), data=str(folder / f"{name}.json"))
    with contextlib.redirect_stdout(io.StringIO()):
        fit = model.sample(chains=4, samples=5000, warmup=1000, seed=1, delta=delta, parallel_chains=1, refresh=0, init_radius=0.5)
    summary = fit.summary()
    rows, worst = [], 0.0
    for variable in summary.names:
        row = {key: float(summary[variable][key]) for key in ("mean", "sd", "mcse_mean", "ess_bulk", "r_hat")}
        if LEFT_OUT.match(variable) or not row["sd"] > 0:
            continue
        if not math.isnan(row["r_hat"]):
            worst = max(worst, row["r_hat"])
        rows.append((name, variable, f"{row['mean']:.6g}", f"{row['sd']:.6g}", f"{row['mcse_mean']:.3g}", f"{row['ess_bulk']:.0f}"))
    return rows, worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    stored = [tuple(row.values()) for row in csv.DictReader(TABLE.open())] if TABLE.exists() else []
    for path in sorted(asked.folder.glob("*.stan")):
        name = path.stem
        if name not in asked.names if asked.names else any(row[0] == name for row in stored):
            continue
        begun = time.process_time()
        try:
            rows, worst = sample(asked.folder, name, 0.95)
        except Exception as error:
            print(f"{name}: {error}", flush=True)
            continue
        print(f"{name}: {len(rows)} quantities, R-hat {worst:.4f}, {time.process_time() - begun:.0f} s", flush=True)
        if worst > 1.01:
            continue
        stored = [row for row in stored if row[0] != name] + rows
        with TABLE.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(stored)


if __name__ == "__main__":
    main()
