#!/usr/bin/env python3
"""Compares ADVI's final bound with that of Stan's own `vb` on the same models.

    python3 tools/corpus/advi_against_stan.py --stan vb_elbo.json --jensen target/release/jensen \
        --seeds 1,2,3,4,5 --markdown advi.md --json advi.json

vb_elbo.json comes from tools/oracle/rstan_bench.R (mean-field, Stan's defaults): per model the runs,
each with `elbo_reported` (the last estimate Stan prints, 100 draws) and, where the draws could be
unconstrained again, `elbo` with `elbo_se` (5000 draws). Ours is `jensen fit --method advi --family
meanfield --init random` (rstan's defaults, the random start included), its bound estimated anew from 4000 draws; beside it the default
method with the same family. All bounds keep all constants. Random numbers differ, so medians over
seeds are compared; the standard error of their difference is the robust spread over seeds (1.2533
times 1.4826 times the median absolute deviation, over the root of the number of seeds), both sides added in
squares, with the single estimates' own errors.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--stan", type=pathlib.Path, required=True)
    parser.add_argument("--jensen", default=str(ROOT / "target" / "release" / "jensen"))
    parser.add_argument("--seeds", default="1,2,3,4,5")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path)
    args = parser.parse_args()
    args.seeds = [int(seed) for seed in args.seeds.split(",")]
    return args


def fit(args, model, seed, *flags):
    folder = ROOT / "models" / model
    command = [args.jensen, "fit", str(folder / "model.stan"), str(folder / "data.json")]
    command += ["--family", "meanfield", "--seed", str(seed), "--json", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 4):
        print(f"{model} seed {seed}: {done.stderr.strip()}", file=sys.stderr)
        return None
    found = json.loads(done.stdout)
    return {key: found[key] for key in ("elbo", "elbo_se", "converged", "khat", "seconds", "status")}


def stan_bound(run):
    """The precise bound where there is one, otherwise the reported one; None for a failed run."""
    if isinstance(run.get("elbo"), (int, float)):
        return run["elbo"]
    return run.get("elbo_reported")


def median_and_error(bounds, errors):
    middle = statistics.median(bounds)
    deviation = statistics.median([abs(bound - middle) for bound in bounds])
    spread = 1.4826 * deviation * 1.2533 / math.sqrt(len(bounds))
    own = statistics.median(errors) / math.sqrt(len(bounds))
    return middle, math.hypot(spread, own)


def compare(args, model, peer):
    stan = [stan_bound(run) for run in peer["runs"]]
    stan = [bound for bound in stan if isinstance(bound, (int, float))]
    ours = [fit(args, model, seed, "--method", "advi", "--init", "random") for seed in args.seeds]
    finite = [run for run in ours if run and isinstance(run["elbo_se"], (int, float))]
    bounds = [run["elbo"] for run in finite]
    best = fit(args, model, args.seeds[0])
    row = {"model": model, "dim": peer.get("dim"), "stan": stan, "advi": ours, "default": best}
    if stan and bounds:
        row["stan_median"], stan_error = median_and_error(
            stan, [run.get("elbo_se") or 0.0 for run in peer["runs"]]
        )
        row["advi_median"], error = median_and_error(bounds, [run["elbo_se"] for run in finite])
        row["difference"] = row["advi_median"] - row["stan_median"]
        row["difference_se"] = math.hypot(stan_error, error)
    row["stan_seconds"] = statistics.median(
        run["seconds"] for run in peer["runs"] if isinstance(run.get("seconds"), (int, float))
    )
    row["advi_seconds"] = statistics.median(run["seconds"]["fit"] for run in ours if run)
    return row


def table(rows):
    lines = [
        "| model | dim | Stan `vb` median (min … max) | ADVI median (min … max) | ADVI − Stan ± se | default method | seconds: Stan, ADVI, default |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        bounds = [run["elbo"] for run in row["advi"] if run and isinstance(run["elbo_se"], (int, float))]
        best = row["default"]
        if "difference" not in row:
            lines.append(f"| {row['model']} | {row['dim']} | {len(row['stan'])} finished | {len(bounds)} finished | | | |")
            continue
        lines.append(
            f"| {row['model']} | {row['dim']} "
            f"| {row['stan_median']:.2f} ({min(row['stan']):.2f} … {max(row['stan']):.2f}) "
            f"| {row['advi_median']:.2f} ({min(bounds):.2f} … {max(bounds):.2f}) "
            f"| {row['difference']:+.2f} ± {row['difference_se']:.2f} "
            f"| {best['elbo']:.2f} "
            f"| {row['stan_seconds']:.2f}, {row['advi_seconds']:.2f}, {best['seconds']['fit']:.3f} |"
        )
    return "\n".join(lines) + "\n"


def main():
    args = arguments()
    peers = json.loads(args.stan.read_text())
    rows = []
    for model, peer in sorted(peers.items()):
        if args.models and model not in args.models:
            continue
        row = compare(args, model, peer)
        rows.append(row)
        print(table([row]).splitlines()[-1], file=sys.stderr)
    compared = [row for row in rows if "difference" in row]
    below = [row["model"] for row in compared if row["difference"] < -3.0 * row["difference_se"] - 0.01]
    text = table(rows) + (
        f"\n{len(compared)} models compared; ADVI's median below Stan's by more than three standard errors: "
        f"{', '.join(below) or 'none'}.\n"
    )
    print(text, end="")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    if args.markdown:
        args.markdown.write_text(text)


if __name__ == "__main__":
    main()
