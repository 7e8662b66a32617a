"""Fits every program under a folder with default settings, and reports trust, reasons against it, and costs.

    python tools/trusted.py BINARY [--models models] [--seeds 1 2 3] [--timeout 90] [--workers 1] [--threads 2]
                            [--csv FILE] [--names NAME ...] [--list] [--flags="--refine none"]

The script needs only Python. A program is a folder with model.stan, and data.json if it has data. The script compares fits with known
answers: with answer.json in the folder of the program (see tools/oracle/adversarial.py and heldout.py), or with the reference posteriors of
references.json. A trusted mean may be off by .15 sd, and a trusted sd by 10 %, each beyond three Monte-Carlo standard errors of both sides.
A fit is close if no sd is off by more than 5 % beyond these errors.

The file has a line for each fit: program, seed, kind, exit, trusted, processor seconds, seconds, dimension, family, k-hat, whether it uses
refined draws, nested R-hat, effective draws, gradients, whether all sds are close to the answer, differences from the answer, and reasons
against trust. The script prints the tables as Markdown.
"""

import argparse
import csv
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

DRAWS = 4000
FIELDS = ["program", "seed", "kind", "exit", "trusted", "cpu", "seconds", "dim", "family", "khat", "refined", "rhat", "ess", "gradients", "close", "faults", "reasons"]


def answers(root):
    """Program -> (kind, name -> (mean, sd, excess kurtosis, draws behind them or None for exact ones))."""
    found = {}
    for folder in sorted(p.parent for p in root.rglob("model.stan")):
        name = str(folder.relative_to(root))
        exact = folder / "answer.json"
        if exact.exists():
            answer = json.loads(exact.read_text())
            found[name] = answer["kind"], {k: (*v, None)[:4] for k, v in answer["moments"].items()}
        elif "/" not in name or name.startswith("failures/"):
            found[name] = "real", {}
    references = root / "references.json"
    if references.exists():
        for entry in json.loads(references.read_text()):
            moments = {k: (m, s, 3.0, entry["draws"]) for k, (m, s) in entry["parameters"].items()}
            found[entry["model"]] = "real", moments
    return found


def compared(moments, fit):
    """Returns differences of the fit from the answer, and whether all sds are close (empty if the answer has none)."""
    summaries = {p["name"]: p for p in fit["parameters"]}
    out, close = [], ""
    for name, (mean, sd, kurtosis, draws) in moments.items():
        own = summaries.get(name)
        if mean is None:
            if own is None or own["sd"] is not None:
                out.append(f"an sd of {name} is reported")
            continue
        # A null for a moment that the tails of draws do not determine is no fault.
        if own is not None and own.get("undefined"):
            continue
        if own is None or own["mean"] is None or own["sd"] is None:
            out.append(f"{name} has no summary")
            continue
        count = own.get("ess") or fit.get("draws") or DRAWS
        count = 1 / (1 / count + (1 / draws if draws else 0))
        off = abs(own["mean"] - mean) / sd
        if off > 0.15 + 3 / math.sqrt(count):
            out.append(f"mean of {name} off by {off:.2f} sd")
        if kurtosis is None:
            continue
        ratio = own["sd"] / sd
        error = 3 * math.sqrt((max(kurtosis, 0) + 2) / (4 * count))
        close = close is not False and abs(ratio - 1) <= 0.05 + error
        if abs(ratio - 1) > 0.10 + error:
            out.append(f"sd of {name} times {ratio:.2f}")
    return out, close


def fit(binary, root, name, seed, kind, moments, args):
    folder = root / name
    data = folder / "data.json"
    command = [binary, "fit", str(folder / "model.stan"), *([str(data)] if data.exists() else [])]
    command += ["--json", "--seed", str(seed), "--threads", str(args.threads), *args.flags.split()]
    if folder.joinpath("answer.json").exists():
        command += ["--draws", str(DRAWS)]
    row = dict.fromkeys(FIELDS, "") | {"program": name, "seed": seed, "kind": kind}
    begun = time.time()
    process = subprocess.Popen(["timeout", str(args.timeout), *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # Read both pipes together. wait4 gives the processor time of this child only.
    with ThreadPoolExecutor(1) as reader:
        errors = reader.submit(process.stderr.read)
        text = process.stdout.read()
        errors = errors.result()
    _, status, usage = os.wait4(process.pid, 0)
    row["seconds"] = round(time.time() - begun, 2)
    row["cpu"] = round(usage.ru_utime + usage.ru_stime, 2)
    row["exit"] = os.waitstatus_to_exitcode(status)
    process.returncode = row["exit"]
    try:
        result = json.loads(text)
    except json.JSONDecodeError:
        row["reasons"] = "no answer: " + " ".join(errors.split())[-200:]
        row["trusted"] = False
        return row
    refinement = result.get("refinement") or {}
    number = lambda x: "" if x is None else float(f"{x:.4g}")
    missed, close = compared(moments, result)
    row |= {
        "trusted": result["trusted"], "dim": result["dim"], "family": result["family"], "khat": number(result["khat"]),
        "refined": refinement.get("used", ""), "rhat": number(refinement.get("rhat")), "ess": number(refinement.get("ess")),
        "gradients": refinement.get("gradients", ""), "close": close, "faults": "; ".join(missed),
        "reasons": "" if result["trusted"] else " | ".join(result["warnings"]),
    }
    return row


def reason_class(row):
    """Returns the classes of reasons against trust, in the order in which users read them."""
    text = row["reasons"]
    for mark, words in (
        ("no answer", "no answer in time"), ("may be improper", "improper"), ("several modes", "several modes"),
        ("different optima", "several optima"), ("did not mix", "refinement did not mix"), ("the bound is", "bound"),
        ("k\u0302", "k-hat"), ("of their own", "weights move moments"), ("rejects", "draws rejected"),
    ):
        if mark in text:
            return words
    return "other"


def wrong(row):
    return row["trusted"] is True and (row["kind"] == "improper" or row["faults"])


def tables(rows):
    first = [r for r in rows if r["seed"] == rows[0]["seed"]]
    cpu = sorted(r["cpu"] for r in first)
    at = lambda p: cpu[min(len(cpu) - 1, int(p * len(cpu)))]
    print(f"\n{len(first)} programs at seed {rows[0]['seed']}: processor seconds median {statistics.median(cpu):.2f}, 95th percentile {at(0.95):.1f}, most {cpu[-1]:.1f}\n")
    print("| kind | programs | trusted | trusted and wrong | refined | over 60 s |\n| --- | --- | --- | --- | --- | --- |")
    for kind in sorted({r["kind"] for r in first}):
        own = [r for r in first if r["kind"] == kind]
        count = lambda f: sum(1 for r in own if f(r))
        print(f"| {kind} | {len(own)} | {count(lambda r: r['trusted'] is True)} | {count(wrong)} | {count(lambda r: r['refined'] is True)} | {count(lambda r: r['seconds'] > 60)} |")
    known = [r for r in rows if r["trusted"] is True and r["close"] != ""]
    near = sum(1 for r in known if r["close"])
    if known:
        print(f"\nTrusted at any seed with known sds: {len(known)}, of which all sds within 5 %: {near} ({100 * near / len(known):.1f} %)")
    bad = [r for r in rows if wrong(r)]
    print(f"\nTrusted and wrong at any seed: {len(bad)} of {len(rows)} fits")
    if bad:
        print("\n| program | seed | faults |\n| --- | --- | --- |")
        for r in bad:
            print(f"| `{r['program']}` | {r['seed']} | {r['faults'] or 'improper'} |")
    refused = [r for r in first if r["trusted"] is not True]
    classes = {}
    for r in refused:
        if r["kind"] in ("real", "proper"):
            classes.setdefault(reason_class(r), []).append(r["program"])
    print("\nRefused, of real and proper ones:\n\n| reason | programs |\n| --- | --- |")
    for words, names in sorted(classes.items(), key=lambda item: -len(item[1])):
        print(f"| {words} | {', '.join(f'`{n}`' for n in names)} |")
    slow = sorted((r for r in first if r["cpu"] > 5), key=lambda r: -r["cpu"])
    if slow:
        print("\nMore than 5 processor seconds:\n\n| program | seconds | dimension | gradients of the refinement |\n| --- | --- | --- | --- |")
        for r in slow:
            print(f"| `{r['program']}` | {r['cpu']:.1f} | {r['dim']} | {r['gradients']} |")
    verdicts = {}
    for r in rows:
        verdicts.setdefault(r["program"], []).append((r["seed"], r["trusted"]))
    flapping = {n: v for n, v in verdicts.items() if len({t for _, t in v}) > 1}
    if len({r["seed"] for r in rows}) > 1:
        print(f"\nOther verdicts at other seeds: {len(flapping)} of {len(verdicts)} programs\n\n| program | trusted at seeds | refused at seeds |\n| --- | --- | --- |")
        for name, v in sorted(flapping.items()):
            seeds = lambda wanted: ", ".join(str(s) for s, t in v if (t is True) == wanted)
            print(f"| `{name}` | {seeds(True)} | {seeds(False)} |")


def listing(rows):
    """Prints one row per program, for the first seed."""
    print("\n| program | dim | trusted | family | k\u0302 | refined | effective draws | gradients | processor s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for r in (r for r in rows if r["seed"] == rows[0]["seed"]):
        yes = lambda x: {True: "yes", False: "no"}.get(x, "")
        khat = "" if r["khat"] == "" else f"{r['khat']:.2f}"
        ess = "" if r["ess"] == "" else f"{r['ess']:.0f}"
        print(f"| {r['program']} | {r['dim']} | {yes(r['trusted'])} | {r['family']} | {khat} | {yes(r['refined'])} | {ess} | {r['gradients']} | {r['cpu']:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path("models"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--timeout", type=int, default=90)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--csv", type=pathlib.Path)
    parser.add_argument("--names", nargs="+")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--flags", default="", help="more flags of jensen fit, in one word with =")
    args = parser.parse_args()
    known = {n: a for n, a in answers(args.models).items() if args.names is None or n in args.names}
    if args.names is None and (args.models / "references.json").exists():
        known = {n: a for n, a in known.items() if not n.startswith(("adversarial/", "heldout/"))}
    jobs = [(seed, name) for seed in args.seeds for name in known]
    rows = []
    output = args.csv.open("w", newline="") if args.csv else None
    writer = csv.DictWriter(output, FIELDS) if output else None
    if writer:
        writer.writeheader()
    with ThreadPoolExecutor(args.workers) as pool:
        made = pool.map(lambda job: fit(args.binary, args.models, job[1], job[0], *known[job[1]], args), jobs)
        for row in made:
            rows.append(row)
            if writer:
                writer.writerow(row)
                output.flush()
            else:
                print(row["program"], row["seed"], row["exit"], row["cpu"], file=sys.stderr)
    tables(rows)
    if args.list:
        listing(rows)


if __name__ == "__main__":
    main()
