"""Write models/<name>/data.json from the collected data sets.

    python make_data.py DATA_ROOT [MODEL ...]

DATA_ROOT holds the folders ARM, BUGS and posteriordb.
"""

import json
import pathlib
import sys

import prepare
import simulate
from datasets import MODELS

MODELS_DIR = pathlib.Path(__file__).resolve().parents[2] / "models"


def load(root, name):
    source, keys = MODELS[name]
    if source == "simulated":
        return getattr(simulate, keys)()
    raw = json.loads((root / f"{source}.data.json").read_text())
    custom = getattr(prepare, name.replace("/", "_"), None)
    if custom is not None:
        return custom(raw)
    return {key: raw[key] for key in keys.split()}


def main():
    root = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:] or MODELS:
        folder = MODELS_DIR / name
        folder.mkdir(parents=True, exist_ok=True)
        data = load(root, name)
        lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v, separators=(', ', ': '))}"
                           for k, v in data.items())
        (folder / "data.json").write_text("{\n" + lines + "\n}\n" if lines else "{}\n")


if __name__ == "__main__":
    main()
