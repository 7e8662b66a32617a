"""Measures the gain from each part of the policy: the share of trusted programs, and seconds, as parts are added.

    python tools/ablation.py BINARY [--models models] [--names NAME ...] [--seed 1] [--max-seconds 10] [--threads 1]
                             [--csv FILE]

The script needs only Python. It fits every program under the folder, except adversarial programs and programs that are meant to
fail, or the named programs, by each variant below. A fit that does not end within the time limit is not trusted. The script
compares answers with references.json, as tools/trusted.py does. It reports processor seconds, which include compilation and
draws, and prints the table as Markdown.
"""

import argparse
import csv
import pathlib
import statistics

import trusted

# Names in the table, and flags of jensen fit.
VARIANTS = [
    ("mean field", "--family meanfield --centring off --refine none"),
    ("full rank", "--family fullrank --centring off --refine none"),
    ("full rank, centring chosen", "--family fullrank --centring auto --refine none"),
    ("sparse precision, centring chosen", "--family sparse --centring auto --refine none"),
    ("conditionally structured, centring chosen", "--family conditional --centring auto --refine none"),
    ("mixture of eight, centring chosen", "--family mixture --centring auto --refine none"),
    ("flow of six layers, centring chosen", "--family flow --centring auto --refine none"),
    ("policy (sparse precision, mixture at modes, weights) without refinement", "--refine none"),
    ("policy", ""),
]


def row(words, rows):
    """A line of the table."""
    cpu = sorted(r["cpu"] for r in rows)
    share = sum(r["trusted"] is True for r in rows)
    wrong = sum(bool(trusted.wrong(r)) for r in rows)
    late = cpu[min(len(cpu) - 1, int(0.95 * len(cpu)))]
    return f"| {words} | {share} of {len(rows)} ({100 * share / len(rows):.0f} %) | {wrong} | {statistics.median(cpu):.2f} | {late:.1f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path("models"))
    parser.add_argument("--names", nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-seconds", type=float, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--csv", type=pathlib.Path)
    args = parser.parse_args()
    # After the limit, a fit still writes its draws.
    args.timeout = int(3 * args.max_seconds) + 10
    known = trusted.answers(args.models)
    if args.names is None:
        known = {n: a for n, a in known.items() if "/" not in n}
    else:
        known = {n: known[n] for n in args.names}
    output = args.csv.open("w", newline="") if args.csv else None
    writer = csv.DictWriter(output, ["variant", *trusted.FIELDS]) if output else None
    if writer:
        writer.writeheader()
    print("| variant | trusted | trusted and wrong | median s | 95th percentile s |\n| --- | --- | --- | --- | --- |", flush=True)
    for words, flags in VARIANTS:
        args.flags = f"{flags} --max-seconds {args.max_seconds}"
        rows = []
        for name, answer in known.items():
            found = trusted.fit(args.binary, args.models, name, args.seed, *answer, args)
            rows.append(found)
            if writer:
                writer.writerow({"variant": words, **found})
                output.flush()
        print(row(words, rows), flush=True)


if __name__ == "__main__":
    main()
