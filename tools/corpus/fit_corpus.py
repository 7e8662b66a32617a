#!/usr/bin/env python3
"""Fits every model of the corpus with the jensen command, and tabulates the results.

    cargo build --release -p jensen-cli
    python3 tools/corpus/fit_corpus.py --jensen target/release/jensen --seeds 1,2,3 \
        --json corpus.json --markdown corpus.md [MODEL ...] [-- FLAGS OF jensen fit]

The script fits every folder below models/ with a model.stan, including models/failures, once for each seed. A row of the table shows
the run with the first seed, and the spread of the bound over all seeds. If the bound of one seed is more than one nat above the bound of
a converged run, the latter stopped at a poorer optimum. The exit status is 1 if a run crashed, had an internal error (5), rejected the
model (3), printed invalid JSON, or exceeded --timeout.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def arguments():
    own, extra = sys.argv[1:], []
    if "--" in own:
        cut = own.index("--")
        own, extra = own[:cut], own[cut + 1 :]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="names of models; all when none is given")
    parser.add_argument("--jensen", default=str(ROOT / "target" / "release" / "jensen"))
    parser.add_argument("--corpus", type=pathlib.Path, default=ROOT / "models")
    parser.add_argument("--seeds", default="0", help="comma separated")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds of one run")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--quiet", action="store_true", help="no line a run on stderr")
    args = parser.parse_args(own)
    args.extra = extra
    args.seeds = [int(seed) for seed in args.seeds.split(",")]
    return args


def folders(corpus, wanted):
    found = sorted(path.parent for path in corpus.glob("**/model.stan"))
    names = {str(path.relative_to(corpus)): path for path in found}
    unknown = [name for name in wanted if name not in names]
    if unknown:
        sys.exit(f"no such model in {corpus.name}/: {', '.join(unknown)}")
    return {name: path for name, path in names.items() if not wanted or name in wanted}


def run(args, name, folder, seed):
    """Runs one fit, and returns fit.json, the exit code, wall-clock seconds and the end of stderr."""
    command = [args.jensen, "fit", str(folder / "model.stan")]
    data = folder / "data.json"
    if data.exists():
        command.append(str(data))
    command += ["--seed", str(seed), "--json", *args.extra]
    row = {"model": name, "seed": seed}
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=args.timeout)
    except subprocess.TimeoutExpired:
        return {**row, "exit": None, "wall": args.timeout, "problem": "timeout"}
    row.update(exit=done.returncode, wall=time.monotonic() - began)
    try:
        fit = json.loads(done.stdout)
    except json.JSONDecodeError:
        return {**row, "problem": done.stderr.strip()[-2000:] or "no output"}
    fit.pop("parameters", None)
    row.update(fit)
    if done.returncode not in (0, 4):
        row["problem"] = done.stderr.strip()[-2000:] or f"exit {done.returncode}"
    return row


def number(value, form):
    return format(value, form) if isinstance(value, (int, float)) else "–"


def table(rows, seeds):
    """Returns the table as Markdown, one line per model."""
    several = len(seeds) > 1
    head = ["model", "dim", "exit", "converged", "trusted", "family", "ELBO", "± se", "k̂", "build s", "fit s"]
    if several:
        head += ["ELBO max − min", "trusted seeds"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for name in dict.fromkeys(row["model"] for row in rows):
        runs = [row for row in rows if row["model"] == name]
        first = runs[0]
        if "problem" in first:
            lines.append(f"| {name} | | {first['exit']} | {first['problem'].splitlines()[0]} |" + " |" * (len(head) - 4))
            continue
        seconds = first.get("seconds") or {}
        cells = [
            name,
            str(first.get("dim", "–")),
            str(first["exit"]),
            "yes" if first.get("converged") else "no",
            "yes" if first.get("trusted") else "no",
            str(first.get("family", "–")),
            number(first.get("elbo"), ".2f"),
            number(first.get("elbo_se"), ".2f"),
            number(first.get("khat"), ".2f"),
            number(seconds.get("build"), ".3f"),
            number(seconds.get("fit"), ".3f"),
        ]
        if several:
            elbos = [run["elbo"] for run in runs if isinstance(run.get("elbo"), (int, float))]
            cells += [
                number(max(elbos) - min(elbos), ".2f") if elbos else "–",
                f"{sum(bool(run.get('trusted')) for run in runs)}/{len(runs)}",
            ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def summary(rows):
    """Returns counts, times, and runs whose bound is more than a nat above a converged run."""
    good = [row for row in rows if "problem" not in row]
    small = [row["seconds"]["fit"] for row in good if row["dim"] <= 200]
    lines = [
        f"{len(rows)} runs: {sum(row['exit'] == 0 for row in rows)} trusted (exit 0), "
        f"{sum(row['exit'] == 4 for row in rows)} not to be trusted (exit 4), "
        f"{sum('problem' in row for row in rows)} without a result; "
        f"{sum(bool(row.get('converged')) for row in good)} converged"
    ]
    if small:
        lines.append(f"median fit up to 200 dimensions: {statistics.median(small):.3f} s, slowest {max(small):.2f} s")
        whole = sorted(row["wall"] for row in good if row["dim"] <= 200)
        lines.append(
            f"whole processes up to 200 dimensions: median {statistics.median(whole):.3f} s, "
            f"upper quartile {whole[3 * len(whole) // 4]:.3f} s"
        )
    best = {}
    for row in good:
        if isinstance(row.get("elbo"), (int, float)):
            best[row["model"]] = max(row["elbo"], best.get(row["model"], row["elbo"]))
    for row in good:
        elbo = row.get("elbo")
        if row.get("converged") and isinstance(elbo, (int, float)):
            short = best[row["model"]] - elbo
            if short > 1.0 + 3.0 * row["elbo_se"]:
                lines.append(f"{row['model']} seed {row['seed']}: converged {short:.2f} nats below another seed")
    return "\n".join(lines) + "\n"


def main():
    args = arguments()
    rows = []
    for name, folder in folders(args.corpus, args.models).items():
        for seed in args.seeds:
            row = run(args, name, folder, seed)
            rows.append(row)
            if not args.quiet:
                said = row.get("problem") or row.get("status")
                print(f"{name} seed {seed}: exit {row['exit']}, {row['wall']:.2f} s, {said}", file=sys.stderr)
    text = table(rows, args.seeds) + "\n" + summary(rows)
    print(text, end="")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    if args.markdown:
        args.markdown.write_text(text)
    sys.exit(1 if any("problem" in row for row in rows) else 0)


if __name__ == "__main__":
    main()
