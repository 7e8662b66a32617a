"""Write models/<name>/data.json from the collected data sets.

    python make_data.py DATA_ROOT [MODEL ...]

DATA_ROOT holds the folders ARM, BUGS and posteriordb, and beside it lies
stochastic-volatility.
"""

import json
import pathlib
import sys

import prepare
import published
import simulate
from datasets import MODELS

MODELS_DIR = pathlib.Path(__file__).resolve().parents[2] / "models"


def load(root, name):
    source, keys = MODELS[name]
    if source == "none":
        return {}
    if source in ("simulated", "published"):
        return getattr(simulate if source == "simulated" else published, keys)()
    custom = getattr(prepare, name, None)
    if source.endswith(".dat"):
        return custom((root / source).read_text())
    if "*" in source:
        paths = sorted(root.glob(f"{source}.data.json"))
        return custom([json.loads(path.read_text()) for path in paths])
    raw = json.loads((root / f"{source}.data.json").read_text())
    return custom(raw) if custom else {key: raw[key] for key in keys.split()}


def main():
    root = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:] or MODELS:
        folder = MODELS_DIR / name
        folder.mkdir(parents=True, exist_ok=True)
        data = load(root, name)
        lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v, separators=(', ', ': '))}"
                           for k, v in data.items())
        (folder / "data.json").write_text("{\n" + lines + "\n}\n" if data else "{}\n")


if __name__ == "__main__":
    main()
