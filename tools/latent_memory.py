"""Compares the expected memory of fits of latent Gaussian models with their peak memory.

    python tools/latent_memory.py BINARY [--only NAME ...]

The script needs NumPy and Linux, where `wait4` reports the peak resident memory. It reads the expected memory from the error of a
run with a memory limit of one kibibyte.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def numbers(n, **more):
    rng = np.random.default_rng(1)
    x = rng.uniform(size=n)
    return {"x": x, "y": np.sin(6 * x) + rng.normal(0, 0.3, n), **more}


def counts(n, **more):
    table = numbers(n, **more)
    return {**table, "y": np.random.default_rng(2).poisson(np.exp(table["y"]))}


def signs(n, **more):
    table = numbers(n, **more)
    return {**table, "y": (table["y"] > 0).astype(int)}


def several(n, count):
    rng = np.random.default_rng(3)
    return {f"c{k}": rng.normal(size=n) for k in range(count)}


def cells(side):
    return np.arange(side * side)


SHAPES = {
    "gp, 1 000 rows": ("gaussian", "gp(rbf, on=x)", lambda: numbers(1000)),
    "gp, 2 100 rows": ("gaussian", "gp(rbf, on=x, lengthscale=0.3, variance=1)", lambda: numbers(2100)),
    "gp, 1 200 counts": ("poisson", "gp(rbf, on=x, lengthscale=0.3, variance=1)", lambda: counts(1200)),
    "gp by states, 20 000 counts": ("poisson", "gp(matern32, on=x)", lambda: counts(20_000)),
    "gp + fixed, 1 200 signs": ("bernoulli", "gp(rbf, on=x, lengthscale=0.3, variance=1) + fixed(c0, c1)", lambda: signs(1200, **several(1200, 2))),
    "rw1, 100 000 rows, 10 000 nodes": ("gaussian", "rw1(on=t)", lambda: numbers(100_000, t=np.arange(100_000) % 10_000)),
    "rw2, 100 000 rows and nodes": ("gaussian", "rw2(on=t)", lambda: numbers(100_000, t=np.arange(100_000))),
    "rw2, 100 000 counts": ("poisson", "rw2(on=t)", lambda: counts(100_000, t=np.arange(100_000))),
    "ar1, 60 000 counts": ("poisson", "intercept() + ar1(on=t)", lambda: counts(60_000, t=np.arange(60_000))),
    "rw2 + rw2, 50 000 rows": ("gaussian", "rw2(on=t) + rw2(on=u)", lambda: numbers(50_000, t=np.arange(50_000) % 300, u=np.arange(50_000) // 250)),
    "iid, 100 000 rows, 10 000 groups": ("gaussian", "intercept() + fixed(x) + iid(on=g)", lambda: numbers(100_000, g=np.arange(100_000) % 10_000)),
    "iid, 80 000 signs, 20 000 groups": ("bernoulli", "intercept() + fixed(x) + iid(on=g)", lambda: signs(80_000, g=np.arange(80_000) % 20_000)),
    "iid + iid, 60 000 rows": ("gaussian", "intercept() + iid(on=g) + iid(on=h)", lambda: numbers(60_000, g=np.arange(60_000) % 3000, h=np.arange(60_000) // 600)),
    "fixed, 100 000 rows, 20 columns": ("gaussian", "intercept() + fixed(" + ", ".join(f"c{k}" for k in range(20)) + ")", lambda: numbers(100_000, **several(100_000, 20))),
    "fixed, 100 000 counts, 20 columns": ("poisson", "intercept() + fixed(" + ", ".join(f"c{k}" for k in range(20)) + ")", lambda: counts(100_000, **several(100_000, 20))),
    "grid(rw1), 200 × 200": ("poisson", "grid(rw1, 200, 200)", lambda: counts(40_000)),
    "grid(rw2), 120 × 120": ("gaussian", "grid(rw2, 120, 120)", lambda: numbers(14_400)),
    "grid(spde), 150 × 150": ("gaussian", "intercept() + grid(spde, 150, 150)", lambda: numbers(22_500)),
    "grid(rw1) + fixed, 150 × 150": ("poisson", "grid(rw1, 150, 150) + fixed(c0, c1, c2)", lambda: counts(22_500, **several(22_500, 3))),
    "multinomial, 20 000 rows": ("multinomial", "intercept() + iid(on=g)", lambda: {"g": np.arange(20_000) % 2000, "y": np.arange(20_000) * 7 % 11 % 3}),
    "student-t, 100 000 rows": ("student-t", "intercept() + fixed(x) + iid(on=g)", lambda: numbers(100_000, g=np.arange(100_000) % 1000)),
}


def write(table, path):
    columns = {name: np.asarray(column) for name, column in table.items()}
    formats = ["%d" if column.dtype.kind in "iu" else "%.6g" for column in columns.values()]
    np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", header=",".join(columns), comments="", fmt=formats)


# The peak of a process includes the peak of its parent, so a small process starts it.
START = """
import os, sys
child = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(child, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss, usage.ru_utime)
"""


def run(command):
    """Runs a command, and returns exit code, error text, peak bytes and processor seconds."""
    command = [sys.executable, "-S", "-c", START, *map(str, command)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    code, peak, seconds = done.stdout.split()[-3:]
    return int(code), done.stderr, 1024 * int(peak), float(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--only", nargs="+", default=list(SHAPES), metavar="NAME")
    args = parser.parse_args()
    print("| shape | expected, MiB | peak, MiB | ratio |\n| --- | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        for name in args.only:
            likelihood, prior, table = SHAPES[name]
            write(table(), path)
            command = [args.binary, "latent", "fit", "--data", path, "--prior", prior, "--likelihood", likelihood, "--response", "y", "--json",
                       "--threads", "1", "--exit-zero", "--quiet"]
            _, refused, _, _ = run([*command, "--memory-limit", "1KiB"])
            estimate = re.search(r"would take ([\d.]+) (B|KiB|MiB|GiB)", refused)
            if not estimate:
                raise SystemExit(f"{name}: {refused}")
            expected = float(estimate[1]) * UNITS[estimate[2]]
            code, errors, peak, seconds = run(command)
            note = "" if code == 0 else f" {code}: {errors.strip()}"
            print(f"| {name} | {expected / 2**20:.0f} | {peak / 2**20:.0f} | {expected / peak:.2f} |{note} {seconds:.1f}", flush=True)


if __name__ == "__main__":
    main()
