"""Compares posteriors of latent Gaussian models with the posteriors by NUTS in models/tables/latent/nuts.json, as a table of the book.

    python tools/peers/latent_nuts.py BINARY

Run it from the root of the repository. It needs only Python. For each model the table has the largest distance of means, in standard
deviations by NUTS, and the largest ratio of standard deviations. Effects and fields have separate columns from hyperparameters, and each
result has the name of its variable.
"""

import json
import subprocess
import sys
from pathlib import Path

FOLDER = Path("models/tables/latent")


def fitted(binary, case):
    request = case["request"]
    flags = [part for key in ("likelihood", "prior", "response", "exposure") if key in request for part in (f"--{key}", request[key])]
    command = [binary, "latent", "fit", "--data", FOLDER / case["table"], "--json", "--exit-zero", "--quiet", *flags]
    fit = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    rows = {row["name"]: row for row in fit["parameters"]}
    rows.update({"h:" + row["name"]: row for row in fit["hyperparameters"]})
    return fit, rows


def worst(known, rows, hyper):
    """The cells for effects, or for hyperparameters."""
    names = [name for name in known if name.startswith("h:") == hyper]
    if not names:
        return ["", ""]
    mean = max(names, key=lambda n: abs(rows[n]["mean"] - known[n][0]) / known[n][1])
    ratio = max(names, key=lambda n: abs(rows[n]["sd"] / known[n][1] - 1))
    show = lambda name: name.removeprefix("h:")
    return [
        f"{(rows[mean]['mean'] - known[mean][0]) / known[mean][1]:+.3f} ± {known[mean][2] / known[mean][1]:.3f} (`{show(mean)}`)",
        f"{rows[ratio]['sd'] / known[ratio][1]:.3f} (`{show(ratio)}`)",
    ]


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        raise SystemExit(__doc__)
    print("| model | prior | effects and fields: mean, sds off | sd, ratio | hyperparameters: mean, sds off | sd, ratio | trusted |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for case in json.loads((FOLDER / "nuts.json").read_text()):
        fit, rows = fitted(sys.argv[1], case)
        cells = worst(case["posterior"], rows, hyper=False) + worst(case["posterior"], rows, hyper=True)
        request = case["request"]
        print(f"| {request['likelihood']} | `{request['prior']}` | " + " | ".join(cells) + f" | {'yes' if fit['trusted'] else 'no'} |", flush=True)


if __name__ == "__main__":
    main()
