"""Gaussian process classification, compared with scikit-learn."""

from pathlib import Path

import numpy as np
from jensen.sklearn import RBF, GaussianProcessClassifier
from sklearn import gaussian_process as theirs
from sklearn.model_selection import StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

# Echoes of sonar: rocks or mines, by the energy in 60 bands.
file = Path(__file__).resolve().parents[2] / "data" / "uci" / "sonar.csv"
table = np.genfromtxt(file, delimiter=",", dtype=str)
X, y = table[:, :-1].astype(float), table[:, -1]

models = {
    "jensen": GaussianProcessClassifier(RBF(8.0, variance=10.0)),
    "scikit-learn": theirs.GaussianProcessClassifier(theirs.kernels.ConstantKernel(10.0) * theirs.kernels.RBF(8.0)),
}
folds = StratifiedKFold(5, shuffle=True, random_state=0)
figures = {}
for name, model in models.items():
    pipe = make_pipeline(StandardScaler(), model)
    scored = cross_validate(pipe, X, y, cv=folds, scoring=("accuracy", "neg_log_loss"))
    figures[name] = scored["test_accuracy"].mean(), -scored["test_neg_log_loss"].mean()
    print(f"{name}: accuracy {figures[name][0]:.2f}, log loss {figures[name][1]:.3f} nats")

fitted = models["jensen"].fit(StandardScaler().fit_transform(X), y)
print(f"{fitted.verdict_}; log marginal likelihood at least {fitted.log_marginal_likelihood_value_:.1f} nats")
print(fitted.hyperparameters_)
assert fitted.trusted_ and figures["jensen"][1] < figures["scikit-learn"][1]
