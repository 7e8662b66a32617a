"""Converts raw data to the data of programs that need more than a selection of variables.

Each function has the name of its model, and maps the raw variables to the data of the program.
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


def every(raw, step, names):
    """Every step-th row of the named columns, new name to old one, under N."""
    rows = range(0, raw["N"], step)
    number = lambda v: round(v, 6) if isinstance(v, float) else v
    return {"N": len(rows)} | {new: [number(raw[old][i]) for i in rows] for new, old in names.items()}


def earnings_ethnic_slopes(raw):
    """Half of the people; centred height and log earnings under their names."""
    columns = every(raw, 2, {"eth": "eth", "height": "x_centered", "log_earn": "y"})
    return {"n_eth": raw["n_eth"]} | columns


def earnings_latin_square(raw):
    """Half of the people; centred height and log earnings under their names."""
    columns = every(raw, 2, {"eth": "eth", "age": "age", "height": "x_centered", "log_earn": "y"})
    return {"n_eth": raw["n_eth"], "n_age": raw["n_age"]} | columns


def earnings_schooling(raw):
    """Every third person of known age, in 1990."""
    known = [i for i in range(raw["N"]) if raw["yearbn"][i] < 90]
    raw = {"N": len(known)} | {name: [raw[name][i] for i in known]
                               for name in ("earnings", "education", "sex", "height", "yearbn")}
    columns = every(raw, 3, {name: name for name in ("earnings", "education", "sex", "height")})
    return columns | {"age": [90 - year for year in raw["yearbn"][::3]]}


def wells_probit(raw):
    """Every fourth household."""
    return every(raw, 4, {"switched": "switc", "dist": "dist", "arsenic": "arsenic", "educ": "educ"})


def charity_logit(raw):
    """Every second person; welfare and charity as one kind of help; half levels of schooling
    rounded down."""
    help = [max(pair) for pair in zip(raw["any_welfare"], raw["any_charity"])]
    made = raw | {"help": help, "educ_r": [int(v) for v in raw["educ_r"]]}
    names = ("help", "male", "over65", "white", "immig", "educ_r", "earnings_top")
    return every(made, 2, {name: name for name in names})


def nes_votes_by_year(files):
    """Counts of votes by election and income."""
    cells = {}
    for year, raw in enumerate(files, 1):
        for income, vote in zip(raw["income"], raw["vote"]):
            cell = cells.setdefault((year, income), [0, 0])
            cell[0] += vote
            cell[1] += 1
    keys = sorted(cells)
    return {"Y": len(files), "N": len(keys), "year": [k[0] for k in keys],
            "income": [k[1] for k in keys], "votes": [cells[k][0] for k in keys],
            "voters": [cells[k][1] for k in keys]}


def electric_grades(raw):
    """The grades one after another."""
    join = lambda name: [v for grade in range(1, 5) for v in raw[f"{name}{grade}"]]
    grade = [g for g in range(1, 5) for _ in range(raw[f"N{g}"])]
    return {"N": len(grade), "grade": grade, "treatment": join("treatment"),
            "pre_test": join("pre_test"), "post_test": join("post_test")}


def electric_supplement(files):
    """The grades one after another."""
    join = lambda name: [v for raw in files for v in raw[name]]
    return {"N": sum(raw["N"] for raw in files), "grade": join("grade"), "supp": join("supp"),
            "pre_test": join("pre_test"), "post_test": join("post_test")}
