"""Fill corners.json with reference values from stanli.

    pip install stanli==0.24.0 numpy
    python make_corners.py

Keeps the programs and their data, draws new points, and stores value and
gradient of Stan's log density with Jacobian there. The programs add their
densities with `target +=`, so that no constants are dropped. What stanli does
not support is left without values: there the tests compare the evaluators.
"""

import json
import math
import pathlib

import numpy as np
import stanli

PATH = pathlib.Path(__file__).with_name("corners.json")


def cases(corner):
    data = json.dumps(corner["data"])
    try:
        model = stanli.bridgestan_model(stan_code=corner["source"], data=data)
    except (RuntimeError, ValueError) as problem:
        print(f"{corner['name']}: {str(problem)[:100]}")
        return []
    rng = np.random.default_rng(len(corner["name"]))
    found = []
    for _ in range(4):
        z = np.round(rng.normal(0, 0.8, model.param_unc_num()), 3)
        value, gradient = model.log_density_gradient(z)
        if math.isfinite(value):
            found.append({"point": z.tolist(), "value": value, "gradient": gradient.tolist()})
    return found


def main():
    corners = json.loads(PATH.read_text())
    for corner in corners:
        corner["cases"] = cases(corner)
    lines = ",\n".join(json.dumps(corner, ensure_ascii=False) for corner in corners)
    PATH.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
