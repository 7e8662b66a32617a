#!/usr/bin/env python3
"""Compares the leave-one-out cross-validation of `jensen latent fit` with fits that lack each row.

    python tools/latent_left_out.py BINARY

The data are the lip cancer counts of data/scotland/lip.csv, with two priors. For each row, the script empties its response, fits the other
rows, and predicts the row. It prints the sums of both log densities, the largest difference, and the number of rows whose share of the
precision exceeds 0.7. It needs only Python, and takes half a minute.
"""

import csv
import io
import subprocess
import sys
import tempfile
from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "scotland"
GRAPH = DATA / "scotland.graph"
PRIORS = [f"fixed(outdoor) + icar(graph={GRAPH}, on=district)", "intercept() + fixed(outdoor) + iid(on=district)"]


def fit(binary, table, prior, out):
    flags = ["--likelihood", "poisson", "--exposure", "expected", "--response", "cases", "--prior", prior]
    subprocess.run([binary, "latent", "fit", table, *flags, "--out", out, "--force", "--quiet"], check=True, capture_output=True)


def main():
    binary = str(Path(sys.argv[1]).resolve())
    rows = list(csv.DictReader((DATA / "lip.csv").open()))
    for prior in PRIORS:
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            fit(binary, DATA / "lip.csv", prior, folder / "whole")
            own = list(csv.DictReader((folder / "whole" / "predictions.csv").open()))
            exact = []
            for i in range(len(rows)):
                with (folder / "part.csv").open("w", newline="") as file:
                    writer = csv.DictWriter(file, rows[0])
                    writer.writeheader()
                    writer.writerows({**row, "cases": ""} if k == i else row for k, row in enumerate(rows))
                fit(binary, folder / "part.csv", prior, folder / "part")
                predict = [binary, "latent", "predict", folder / "part", "--at", DATA / "lip.csv"]
                text = subprocess.run(predict, check=True, capture_output=True, text=True).stdout
                exact.append(float(list(csv.DictReader(io.StringIO(text)))[i]["log_density"]))
            found = [float(row["loo_log_density"]) for row in own]
            largest = max(abs(a - b) for a, b in zip(found, exact))
            large = sum(float(row["loo_share"]) > 0.7 for row in own)
            print(f"{prior}: {sum(found):.2f}, exact {sum(exact):.2f}, largest difference {largest:.4f}, {large} shares above 0.7")


if __name__ == "__main__":
    main()
