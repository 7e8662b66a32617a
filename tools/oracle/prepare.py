"""Rearrangements of raw data that are more than picking variables.

Each function is named after its model and maps the raw variables to the data
of the program.
"""

import math


def diamonds_glm(raw):
    """Every eighth diamond, to keep the file small."""
    rows = range(0, raw["N"], 8)
    return {"N": len(rows), "K": raw["K"],
            "Y": [round(raw["Y"][i], 6) for i in rows],
            "X": [[round(v, 6) for v in raw["X"][i]] for i in rows]}


def nes_vote_logit(raw):
    """Income as a matrix of one column."""
    return {"N": raw["N"], "income": [[v] for v in raw["income"]], "vote": raw["vote"]}


def birats_inv_wishart(raw):
    """The prior scale of the covariance under the name of the program."""
    return {"N": raw["N"], "T": raw["T"], "x": raw["x"], "y": raw["y"], "S": raw["Omega"]}


def stochastic_volatility(text):
    """Returns from the second column, in percent."""
    y = [float(line.split()[1]) for line in text.splitlines() if line.strip()]
    return {"T": len(y), "y": [round(v, 6) for v in y]}


def weight_censored(raw):
    """Weights at the censoring point apart from those below it."""
    pairs = list(zip(raw["weight"], raw["height"]))
    below = [p for p in pairs if p[0] < raw["C"]]
    return {"N_obs": len(below), "N_cens": len(pairs) - len(below), "C": raw["C"],
            "weight": [w for w, _ in below], "height": [h for _, h in below],
            "height_cens": [h for w, h in pairs if w >= raw["C"]]}


def frisk_negative_binomial(raw):
    """Stops and past arrests summed over types of crime."""
    cells = {}
    for eth, precint, stops, log_arrests in zip(raw["eth"], raw["precint"], raw["stops"], raw["offeset"]):
        cell = cells.setdefault((precint, eth), [0, 0.0])
        cell[0] += stops
        cell[1] += math.exp(float(log_arrests))
    keys = sorted(cells)
    return {"N": len(keys), "n_eth": 3, "n_precint": max(raw["precint"]),
            "eth": [k[1] for k in keys], "precint": [k[0] for k in keys],
            "stops": [cells[k][0] for k in keys],
            "log_arrests": [round(math.log(cells[k][1]), 10) for k in keys]}
