"""Writes models/references.json: posterior means and standard deviations of programs of the corpus.

    python references.py DATA_ROOT

The values come from the reference draws of posteriordb (10 000 draws of a long run of Stan's sampler for each posterior). The programs have
the same data and priors as in posteriordb. A table translates names of parameters where a program has other names.
"""

import json
import pathlib
import sys

MODELS_DIR = pathlib.Path(__file__).resolve().parents[2] / "models"

REFERENCES = {
    "ar_k": ("arK-arK", {"alpha": "level", "beta": "phi", "sigma": "noise"}),
    "earnings_height": ("earnings-earn_height", {}),
    "eight_schools_noncentred": ("eight_schools-eight_schools_noncentered", {}),
    "garch_1_1": ("garch-garch11", {"mu": "mean_return", "alpha0": "base", "alpha1": "shock",
                                    "beta1": "memory"}),
    "gp_poisson": ("gp_pois_regr-gp_pois_regr", {"rho": "length_scale", "alpha": "amplitude",
                                                 "f": "log_rate"}),
    "gp_regression": ("gp_pois_regr-gp_regr", {"rho": "length_scale", "alpha": "amplitude",
                                               "sigma": "noise"}),
    "hmm_gaussian": ("hmm_example-hmm_example", {"theta1[1]": "jump[1,1]", "theta1[2]": "jump[1,2]",
                                                 "theta2[1]": "jump[2,1]", "theta2[2]": "jump[2,2]",
                                                 "mu": "level"}),
    "kidscore_interaction": ("kidiq-kidscore_interaction", {}),
    "kidscore_momiq": ("kidiq-kidscore_momiq", {}),
    "kidscore_momwork": ("kidiq_with_mom_work-kidscore_mom_work", {}),
    "gauss_mix_ordered": ("low_dim_gauss_mix-low_dim_gauss_mix", {"mu": "centre", "sigma": "spread",
                                                                  "theta": "share"}),
    "mesquite_shape": ("mesquite-logmesquite_logvas", {}),
    "nes_party_linear": ("nes1972-nes", {}),
    "collinear_blr": ("sblrc-blr", {}),
}


def renamed(name, names):
    """The program's name of a scalar: of its own in the table, or that of its container."""
    container, bracket, subscripts = name.partition("[")
    return names.get(name) or names.get(container, container) + bracket + subscripts


def main():
    root = pathlib.Path(sys.argv[1]) / "posteriordb"
    lines = []
    for model, (posterior, names) in sorted(REFERENCES.items()):
        raw = json.loads((root / f"{posterior}.reference.json").read_text())
        figures = {renamed(name, names): [f["mean"], f["sd"]] for name, f in raw["reference"].items()}
        entry = {"model": model, "posterior": posterior, "draws": raw["draws"], "parameters": figures}
        lines.append("  " + json.dumps(entry))
    (MODELS_DIR / "references.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
