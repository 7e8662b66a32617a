"""Writes the exact summaries of models/dyes_variance_components, by quadrature over its two precisions, to its answer.json.

    python tools/oracle/variance_components.py

The script needs numpy. Given the precisions, the effects and the grand mean are normal, and the script integrates them out exactly. It
sums over a grid of the logarithms of the precisions. A tenth of the posterior's mass is in a separated tail mode with almost equal
effects. There the precision of the effects, whose prior is gamma(0.001, 0.001), can be anything up to a thousand.
"""

import json
import math
import pathlib

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "models" / "dyes_variance_components"
SHAPE = RATE = 0.001
GRAND_VARIANCE = 1e10


def main():
    y = np.array(json.loads((FOLDER / "data.json").read_text())["y"], float)
    batches, samples = y.shape
    means = y.mean(1)
    within = ((y - means[:, None]) ** 2).sum()
    logs = np.meshgrid(np.linspace(-16, 9, 2501), np.linspace(-11, -5, 601), indexing="ij")
    between, own = np.exp(logs[0]), np.exp(logs[1])
    # Moments of batch means: independent parts, and the common grand mean.
    variance = 1 / between + 1 / (samples * own)
    square = (means**2).sum() / variance - GRAND_VARIANCE * (means.sum() / variance) ** 2 / (1 + batches * GRAND_VARIANCE / variance)
    log_p = batches * (0.5 * (samples - 1) * np.log(own / (2 * np.pi)) - 0.5 * np.log(samples)) - 0.5 * own * within
    log_p -= 0.5 * (batches * np.log(2 * np.pi * variance) + np.log1p(batches * GRAND_VARIANCE / variance) + square)
    for precision, log in zip((between, own), logs):
        log_p += SHAPE * math.log(RATE) - math.lgamma(SHAPE) + SHAPE * log - RATE * precision
    weights = np.exp(log_p - log_p.max())
    cell = (logs[0][1, 0] - logs[0][0, 0]) * (logs[1][0, 1] - logs[1][0, 0])
    print(f"log evidence {log_p.max() + math.log(weights.sum() * cell):.3f}")
    weights /= weights.sum()
    shown = {
        "precision[1]": between,
        "precision[2]": own,
        "s[1]": between**-0.5,
        "s[2]": own**-0.5,
        "share_between": own / (own + between),
    }
    moments = {}
    for name, values in shown.items():
        mean = (weights * values).sum()
        variance = (weights * (values - mean) ** 2).sum()
        moments[name] = [mean, math.sqrt(variance), (weights * (values - mean) ** 4).sum() / variance**2 - 3]
        print(f"{name} mean {mean:.6g} sd {math.sqrt(variance):.6g}")
    rows = ",\n".join(f"    {json.dumps(name)}: {json.dumps(row)}" for name, row in moments.items())
    about = "Two variance components; a separated tail mode with an eighth of the mass"
    text = f'{{\n  "kind": "real",\n  "about": "{about}",\n  "moments": {{\n{rows}\n  }}\n}}\n'
    (FOLDER / "answer.json").write_text(text)
    print(f"mass where precision[1] is above 0.1: {weights[between > 0.1].sum():.4f}")


if __name__ == "__main__":
    main()
