"""Rearrangements of raw data that are more than picking variables.

Each function is named after its model and maps the raw variables to the data
of the program.
"""


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
