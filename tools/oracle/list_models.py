"""Refresh the table of models in models/README.md.

    python list_models.py
"""

import json
import pathlib
import re

from datasets import MODELS

MODELS_DIR = pathlib.Path(__file__).resolve().parents[2] / "models"
START, END = "<!-- table: list_models.py -->\n", "<!-- end of table -->\n"


def about(source):
    """The first sentence of the comment that opens the program."""
    comment = re.match(r"(?://[^\n]*\n)+", source).group(0)
    text = " ".join(line.removeprefix("//").strip() for line in comment.splitlines())
    return text.rstrip(".")


def origin(source):
    if source.startswith("../"):
        return source.split("/")[1]
    return {"none": "no data"}.get(source, source)


def table():
    rows = ["| model | dim | points | data | contents |", "| --- | ---: | ---: | --- | --- |"]
    for name in sorted(MODELS, key=lambda n: (n.startswith("failures/"), n)):
        folder = MODELS_DIR / name
        oracle = json.loads((folder / "oracle.json").read_text())
        rows.append(f"| [{name}]({name}/model.stan) | {oracle['dim']} | {len(oracle['points'])} | "
                    f"{origin(MODELS[name][0])} | {about((folder / 'model.stan').read_text())} |")
    return "\n".join(rows) + "\n"


def main():
    path = MODELS_DIR / "README.md"
    text = path.read_text()
    before, rest = text.split(START)
    path.write_text(before + START + table() + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
