"""Writes design matrices of the package formulaic for the tests of crates/regress, on the table of `model_matrix.R`.

    pip install formulaic==1.2.2
    python tools/oracle/formulaic_designs.py crates/regress/tests/data

formulaic codes columns by other rules than R, but its columns span the same space. The tests compare the spaces.
"""

import json
import pathlib
import sys

import pandas as pd
from formulaic import model_matrix

# As Jensen writes the formula, and as formulaic does where that differs.
FORMULAS = [
    "x", "x + z", "0 + x", "x - 1", "1", "a", "a + b", "0 + a", "0 + a + b", "a - 1",
    "a * b", "a:b", "a + a:b", "b + a:b", "0 + a:b", "a * x", "a:x", "a + a:x", "x + a:x", "0 + a:x",
    "0 + a * x", "a * b * c", "(a + b + x)^2", "a / b", "a / x", "(a + b) / x", "a * b - a", "a * b - b", "b * c", "c:x + b",
    "x:z", "x * z", "x:z:a", "x * z * b", "a:b:x", "c + x + a:b", "a + b + c + x + z + n", "(x + z)^2", "(x + z + n)^2", "a * (b + x)",
    "log(z)", "exp(x)", "log(z) * a", "exp(x) + log(z)", "x + log(z):b", "log(z) / a",
    ("poly(x, 2)", "poly(x, degree=2)"), ("poly(x, 3) + a", "poly(x, degree=3) + a"), ("poly(z, 2):b", "poly(z, degree=2):b"),
    ("poly(x, 2) * a", "poly(x, degree=2) * a"),
    "scale(x)", "scale(x) * a", "scale(x):scale(z)", ("center(x)", "center(x)"),
    ("factor(n)", "C(n)"), ("factor(n):x", "C(n):x"), ("factor(n) * b", "C(n) * b"), ("0 + factor(n)", "0 + C(n)"),
    ("bs(x, df = 5)", "bs(x, df=5)"), ("bs(x, df = 6)", "bs(x, df=6)"), ("bs(x, df = 5) + a", "bs(x, df=5) + a"),
    ("bs(x, df = 5, degree = 2)", "bs(x, df=5, degree=2)"),
    ("I(x^2)", "I(x**2)"), ("x + I(x^2)", "x + I(x**2)"), ("I(x * z)", "I(x * z)"), ("I(x / z) + b", "I(x / z) + b"),
]

folder = pathlib.Path(sys.argv[1])
table = pd.read_csv(folder / "table.csv")
rows = []
for formula in FORMULAS:
    ours, theirs = (formula, formula) if isinstance(formula, str) else formula
    matrix = model_matrix(theirs, table)
    columns = [[float(f"{x:.15g}") for x in matrix.iloc[:, at]] for at in range(matrix.shape[1])]
    rows.append({"formula": ours, "formulaic": theirs, "columns": columns})
text = ",\n".join(json.dumps(row) for row in rows)
(folder / "designs_formulaic.json").write_text(f"[\n{text}\n]\n")
print(len(rows), "formulas")
