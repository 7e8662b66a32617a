"""Samples posteriors of regressions by NUTS on the programs of brms, and compares `jensen regress` with them.

    pip install stanli==0.24.0 numpy
    Rscript tools/peers/regress.R FOLDER
    python tools/peers/regress.py FOLDER --stored crates/jensen/tests/data/regressions
    python tools/peers/regress.py FOLDER --jensen target/release/jensen --stored crates/jensen/tests/data/regressions

The first form samples (four chains, each with 1 000 transitions of warm-up and 5 000 draws), and writes tables and references.json for the
tests. With `--jensen` the script compares the stored results with the answers of the command, and prints a table for the book: processor
seconds from the shell to the answers, the largest distance of a mean in standard errors of the difference, and the largest ratio of
standard deviations.
"""

import argparse
import contextlib
import csv
import io
import json
import math
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import tempfile

import numpy as np


def new_arrays(program):
    """Rewrites arrays to the syntax since Stan 2.26, because brms 2.18 writes the earlier one."""
    size = r"\[([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\]"
    program = re.sub(rf"^(\s*)(int(?:<[^>]*>)?|real(?:<[^>]*>)?) (\w+){size};", r"\1array[\4] \2 \3;", program, flags=re.M)
    program = re.sub(rf"^(\s*)(\w+(?:<[^>]*>)?)(\[[^\]]*\]) (\w+){size};", r"\1array[\5] \2\3 \4;", program, flags=re.M)
    return re.sub(r"\b(int|real|vector|matrix)\s?\[\]", r"array[] \1", program)


def sample(folder, case):
    """Mean, standard deviation and standard error of the mean of each compared scalar, and the worst R-hat."""
    import stanli

    program = new_arrays((folder / f"{case['name']}.stan").read_text())
    model = stanli.Model(stan_code=program, data=str(folder / f"{case['name']}.json"))
    with contextlib.redirect_stdout(io.StringIO()):
        fit = model.sample(chains=4, samples=5000, warmup=1000, seed=1, delta=0.95, parallel_chains=1, refresh=0, init_radius=0.5)
    summary = fit.summary()
    found, worst = {}, 0.0
    for ours, theirs in case["names"].items():
        wanted = [theirs] if isinstance(theirs, str) else theirs
        rows = [name for one in wanted for name in summary.names if one in (name, name.split("[")[0])]
        assert rows, f"{case['name']}: no {theirs} among {sorted({n.split('[')[0] for n in summary.names})}"
        found[ours] = [[float(summary[name][key]) for key in ("mean", "sd", "mcse_mean")] for name in rows]
        worst = max([worst] + [summary[name]["r_hat"] for name in rows])
    if worst > 1.01:
        print(f"{case['name']}: R-hat {worst}, not stored", flush=True)
        return None
    return found


def jensen(binary, folder, case, seed):
    """Returns the output of `jensen regress --json`, and processor seconds."""
    with tempfile.TemporaryDirectory() as temporary:
        line = [binary, "regress", f"{case['name']}.csv", *case["formulas"], "--family", case["family"], *(part for prior in case["priors"] for part in ("--prior", prior)), "--seed", str(seed),
                "--threads", "1", "--json", "--out", temporary + "/fit"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode not in (0, 4):
        raise SystemExit(f"{case['name']}: {done.stderr}")
    return json.loads(done.stdout), spent


def compare(answer, posterior):
    """Largest distance of a mean in standard errors of the difference and in standard deviations, and the most unequal sds.

    An sd that the command omits, because a few draws determine it, is not compared.
    """
    errors, distances, ratios = [], [], []
    for name, rows in posterior.items():
        own = [p for p in answer["parameters"] if p["name"].split("[")[0] == name]
        assert len(own) == len(rows), f"{name}: {len(own)} and {len(rows)}"
        for p, (mean, sd, mcse) in zip(own, rows, strict=True):
            errors.append(abs(p["mean"] - mean) / math.hypot(mcse, p["mcse"]))
            distances.append(abs(p["mean"] - mean) / sd)
            if p["sd"] is not None:
                ratios.append(p["sd"] / sd)
    return max(errors), max(distances), max(ratios, key=lambda r: abs(math.log(r)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--stored", type=pathlib.Path, required=True)
    parser.add_argument("--jensen", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--names", nargs="*")
    asked = parser.parse_args()
    path = asked.stored / "references.json"
    stored = {case["name"]: case for case in json.loads(path.read_text())} if path.exists() else {}
    if not asked.jensen:
        asked.stored.mkdir(parents=True, exist_ok=True)
        for case in json.loads((asked.folder / "cases.json").read_text()):
            if asked.names and case["name"] not in asked.names:
                continue
            posterior = sample(asked.folder, case)
            if posterior is None:
                continue
            shutil.copy(asked.folder / f"{case['name']}.csv", asked.stored)
            if "car(" in case["formulas"][0]:
                shutil.copy(asked.folder / "map.graph", asked.stored)
            kept = {key: case[key] for key in ("name", "source", "formulas", "family", "priors", "witness", "ml")}
            stored[case["name"]] = kept | {"posterior": {k: [[float(f"{x:.6g}") for x in row] for row in v] for k, v in posterior.items()}}
            path.write_text("[\n" + ",\n".join(json.dumps(case) for case in stored.values()) + "\n]\n")
            print(case["name"], flush=True)
        return
    spent = {}
    print("| data | formula | family | coefficient | maximum likelihood | NUTS | here | farthest mean | sds |")
    print("| --- | --- | --- | --- | --- | --- | --- | ---: | ---: |")
    for case in stored.values():
        if asked.names and case["name"] not in asked.names:
            continue
        answer, seconds = jensen(asked.jensen, asked.stored, case, asked.seed)
        spent[case["name"]] = (seconds, answer["trusted"])
        errors, distances, ratio = compare(answer, case["posterior"])
        labels = [p.get("label", p["name"]) for p in answer["parameters"]]
        shown = next(iter(case["ml"]), None) or next(label for label in labels if label.startswith("b"))
        of = [label for label in labels if label.split("[")[0] == shown.split("[")[0]]
        own = answer["parameters"][labels.index(shown)]
        nuts = case["posterior"][shown.split("[")[0]][of.index(shown)]
        likelihood = "".join(f"{estimate:.3g} ± {error:.2g} ({case['witness']})" for estimate, error in case["ml"].values())
        source = "" if case["source"] == "made up" else f": {case['source']}"
        formula = "; ".join(case["formulas"]).replace("|", "\\|")
        print(f"| {case['name']}{source} | `{formula}` | {case['family']} | `{shown}` | {likelihood} | {nuts[0]:.3g} ± {nuts[1]:.2g} | "
              f"{own['mean']:.3g} ± {own['sd']:.2g} | {errors:.1f} se, {distances:.2f} sd | {ratio:.2f} |".replace(" -", " −"), flush=True)
    print("\nprocessor seconds: " + ", ".join(f"{name} {seconds:.2f}{'' if trusted else ' (not trusted)'}" for name, (seconds, trusted) in spent.items()))
    times = [seconds for seconds, _ in spent.values()]
    print(f"{len(times)} regressions: median {statistics.median(times):.2f} processor s, most {max(times):.2f}")


if __name__ == "__main__":
    main()
