"""Compares processor seconds of a fit and of NUTS (stanli) to the same Monte-Carlo standard error of every mean.

    pip install stanli==0.24.0 numpy
    python tools/peers/nuts.py BINARY [--models models] [--names NAME ...] [--seed 1] [--chains 4] [--draws 1000]

`jensen fit` fits each program with default settings on one thread. stanli then samples it by NUTS with default settings: four chains one
after another, each with 1 000 transitions of warm-up and 1 000 of sampling. The standard error of a mean is proportional to the inverse
square root of the number of draws. The sampling time for Jensen's standard error of every reported mean is therefore
(stanli's error / Jensen's error)^2 times the measured time, for the scalar with the largest ratio. Warm-up is added unchanged. Both times
include compiling the program and generated quantities. If one of the methods fails its checks (Jensen does not trust the fit, or R-hat of
NUTS is above 1.01), the ratio is in parentheses, and the median omits it.
"""

import argparse
import contextlib
import io
import json
import pathlib
import re
import resource
import statistics
import subprocess
import time

import numpy as np
import stanli

COLUMNS = ("program", "dimension", "Jensen, s", "trusted", "NUTS 4 x 1000, s", "R-hat", "to equal error, s", "ratio")


def jensen(binary, folder, seed):
    """Returns fit.json and processor seconds."""
    files = [str(folder / name) for name in ("model.stan", "data.json") if (folder / name).exists()]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([binary, "fit", *files, "--json", "--seed", str(seed), "--threads", "1"],
                          capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout), spent


def nuts(folder, names, args):
    """Returns standard errors of the means of `names`, the worst R-hat, and processor seconds of building with warm-up and of sampling."""
    data = folder / "data.json"
    begun, output = time.process_time(), io.StringIO()
    with contextlib.redirect_stdout(output):
        model = stanli.Model(stan_file=str(folder / "model.stan"), data=str(data) if data.exists() else None)
        built = time.process_time() - begun
        fit = model.sample(chains=args.chains, samples=args.draws, seed=args.seed, parallel_chains=1)
    spent = time.process_time() - begun - built
    seconds = {what: sum(float(s) for s in re.findall(rf"([0-9.]+) seconds \({what}\)", output.getvalue()))
               for what in ("Warm-up", "Sampling")}
    share = seconds["Sampling"] / (seconds["Warm-up"] + seconds["Sampling"])
    summary = fit.summary()
    rows = {name: summary[name] for name in summary.names}
    kept = [rows[name] for name in names if name in rows]
    assert kept, f"{folder}: no parameter has the same name"
    rhat = np.nanmax([row["r_hat"] for row in kept])
    errors = {name: rows[name]["mcse_mean"] for name in names if name in rows}
    return errors, rhat, built + spent * (1 - share), spent * share


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path("models"))
    parser.add_argument("--names", nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--draws", type=int, default=1000)
    args = parser.parse_args()
    names = args.names or sorted(p.parent.name for p in args.models.glob("*/model.stan"))
    print("| " + " | ".join(COLUMNS) + " |\n|" + " --- |" * len(COLUMNS), flush=True)
    ratios = []
    for name in names:
        folder = args.models / name
        fit, own = jensen(args.binary, folder, args.seed)
        errors = {p["name"]: p["mcse"] for p in fit["parameters"] if p.get("mcse")}
        try:
            theirs, rhat, warm, sampling = nuts(folder, list(errors), args)
        except Exception as error:  # The table shows the message of stanli.
            print(f"| {name} | {fit['dim']} | {own:.2f} | {fit['trusted']} | {str(error).splitlines()[0][:60]} | | | |", flush=True)
            continue
        more = max((theirs[n] / errors[n]) ** 2 for n in theirs if np.isfinite(theirs[n]))
        equal = warm + sampling * more
        good = fit["trusted"] and rhat <= 1.01
        if good:
            ratios.append(equal / own)
        shown = f"{equal / own:.1f}" if good else f"({equal / own:.1f})"
        print(f"| {name} | {fit['dim']} | {own:.2f} | {'yes' if fit['trusted'] else 'no'} | {warm + sampling:.2f} | {rhat:.3f} "
              f"| {equal:.2f} | {shown} |", flush=True)
    if ratios:
        print(f"\nmedian {statistics.median(ratios):.1f}, least {min(ratios):.1f}, most {max(ratios):.1f} "
              f"of {len(ratios)} programs where both methods pass their checks")


if __name__ == "__main__":
    main()
