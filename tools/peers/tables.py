"""Compares ten-fold scores of estimators of jensen.sklearn and of scikit-learn on tables with raw scales.

    python tools/peers/tables.py [--data iris,longley] [--tasks density,counts] [--epochs 300]

The script needs scikit-learn, statsmodels (for its tables) and the package jensen. The tables are the toy data sets of scikit-learn and
public data that come with statsmodels. Their columns have the published scales: dollars, years, per cents. The script fits each estimator
to nine tenths of the rows, and scores it on the other tenth:

| task | score | estimators of scikit-learn |
| --- | --- | --- |
| density | mean log density of a row, nats | GaussianMixture and BayesianGaussianMixture of as many components; FactorAnalysis and PCA of as many factors |
| numbers | one less the squared error, as a share of the variance of y | LinearRegression, RidgeCV, BayesianRidge; GaussianProcessRegressor |
| classes | mean log probability of the class, nats | LogisticRegression, LogisticRegressionCV; GaussianProcessClassifier |
| counts | less half the mean Poisson deviance, nats | PoissonRegressor with alpha of 0, 0.001 and 1 |
| topics | mean log probability of a word of a document's second half, nats | LatentDirichletAllocation, batch and online |

Estimators of scikit-learn see columns that are standardised by the training rows (densities include the Jacobian). The script compares with
the best of them by mean score. It prints means over folds, the standard error of the paired difference to the best, and the number of folds
with a trusted fit. A row is `behind` if it is more than two standard errors below the best in the folds with a trusted fit.
FactorialMixture and HiddenMarkov have no counterpart in scikit-learn. Densities omit columns that are constant in a training set, and columns
with one value in a fifth of the rows or more, because the bound is infinite for a component that shrinks onto such a value.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn import datasets, decomposition, gaussian_process, linear_model, mixture
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import jensen.sklearn as js

RBF, WHITE, SCALE = gaussian_process.kernels.RBF, gaussian_process.kernels.WhiteKernel, gaussian_process.kernels.ConstantKernel

#: The time of Gaussian processes grows with the cube of the rows. For several classes, scikit-learn fits one process per class.
MOST_ROWS = 200


def frame(name):
    """The numbers of a table of statsmodels, and the names of its columns."""
    import statsmodels.datasets as shipped

    table = getattr(shipped, name).load_pandas().data.select_dtypes("number").dropna()
    return table


def split(name, response, without=()):
    table = frame(name)
    return table.drop(columns=[response, *without]).to_numpy(float), table[response].to_numpy(float)


def densities():
    yield "iris", lambda: datasets.load_iris().data
    yield "wine", lambda: datasets.load_wine().data
    yield "breast_cancer", lambda: datasets.load_breast_cancer().data
    yield "diabetes", lambda: datasets.load_diabetes(scaled=False).data
    yield "linnerud", lambda: np.hstack([datasets.load_linnerud().data, datasets.load_linnerud().target])
    yield "digits", lambda: datasets.load_digits().data
    for name in ["longley", "ccard", "statecrime", "star98", "macrodata"]:
        yield name, lambda name=name: frame(name).to_numpy(float)


def numbers():
    yield "diabetes", lambda: datasets.load_diabetes(scaled=False, return_X_y=True)
    for k, target in enumerate(["weight", "waist", "pulse"]):
        yield f"linnerud {target}", lambda k=k: (datasets.load_linnerud().data, datasets.load_linnerud().target[:, k])
    yield "longley", lambda: split("longley", "TOTEMP")
    yield "ccard", lambda: split("ccard", "AVGEXP")
    yield "stackloss", lambda: split("stackloss", "STACKLOSS")
    yield "statecrime", lambda: split("statecrime", "murder")
    yield "engel", lambda: split("engel", "foodexp")
    yield "copper", lambda: split("copper", "COPPERPRICE")
    yield "star98", lambda: split("star98", "NABOVE")


def classes():
    yield "iris", lambda: datasets.load_iris(return_X_y=True)
    yield "wine", lambda: datasets.load_wine(return_X_y=True)
    yield "breast_cancer", lambda: datasets.load_breast_cancer(return_X_y=True)
    yield "digits", lambda: datasets.load_digits(return_X_y=True)
    yield "spector", lambda: split("spector", "GRADE")
    yield "anes96", lambda: split("anes96", "vote")


def counts():
    yield "cancer", lambda: split("cancer", "cancer")
    yield "cpunish", lambda: split("cpunish", "EXECUTIONS")
    yield "committee", lambda: split("committee", "BILLS104")
    yield "modechoice", lambda: split("modechoice", "psize", ["individual"])
    yield "randhie", lambda: tuple(part[::20] for part in split("randhie", "mdvis"))


def corpora():
    yield "digits", lambda: datasets.load_digits().data


class Standardised:
    """The density of raw rows by a model of scikit-learn on standardised columns."""

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X):
        self.mean, self.sd = X.mean(0), X.std(0)
        self.estimator.fit((X - self.mean) / self.sd)
        return self

    def score_samples(self, X):
        return self.estimator.score_samples((X - self.mean) / self.sd) - np.log(self.sd).sum()


def scaled(estimator):
    return make_pipeline(StandardScaler(), estimator)


def density_peers(X, epochs):
    rows, columns = X.shape
    k = min(3, rows // 5)
    for name, shape in {"mixture, full": "full", "mixture, diagonal": "diag"}.items():
        yield name, lambda shape=shape: js.BayesianGaussianMixture(k, covariance_type=shape, random_state=0), [
            lambda shape=shape: Standardised(mixture.GaussianMixture(k, covariance_type=shape, n_init=5, random_state=0)),
            lambda shape=shape: Standardised(
                mixture.BayesianGaussianMixture(n_components=k, covariance_type=shape, n_init=5, max_iter=500, random_state=0)
            ),
        ]
    latent = min(2, columns - 1)
    yield "auto-encoder", lambda: js.AutoEncoder(
        latent, hidden=(32,), max_iter=epochs, batch_size=min(50, rows), optimizer="adam", learning_rate=0.003, random_state=0
    ), [
        lambda: Standardised(decomposition.FactorAnalysis(latent, random_state=0)),
        lambda: Standardised(decomposition.PCA(latent, random_state=0)),
    ]


def number_peers(X, _):
    yield "linear", js.BayesianLinear, [
        linear_model.LinearRegression,
        lambda: scaled(linear_model.RidgeCV(np.logspace(-3, 3, 13))),
        lambda: scaled(linear_model.BayesianRidge()),
    ]
    if len(X) <= MOST_ROWS:
        kernel = SCALE() * RBF() + WHITE()
        yield "process", lambda: js.GaussianProcessRegressor("gp(rbf) + intercept()"), [
            lambda: scaled(gaussian_process.GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=2, random_state=0))
        ]


def class_peers(X, _):
    yield "logistic", js.BayesianLogistic, [
        lambda: scaled(linear_model.LogisticRegression(max_iter=1000)),
        lambda: scaled(linear_model.LogisticRegressionCV(max_iter=1000, scoring="neg_log_loss", cv=5, l1_ratios=(0.0,), use_legacy_attributes=False)),
    ]
    if len(X) <= MOST_ROWS:
        kernel = SCALE() * RBF()
        yield "process", js.GaussianProcessClassifier, [
            lambda: scaled(gaussian_process.GaussianProcessClassifier(kernel, random_state=0))
        ]


def count_peers(X, _):
    theirs = [lambda alpha=alpha: scaled(linear_model.PoissonRegressor(alpha=alpha, max_iter=10_000)) for alpha in (0, 0.001, 1)]
    yield "Poisson", js.BayesianPoisson, theirs
    if len(X) <= MOST_ROWS:
        yield "process", js.GaussianProcessCountRegressor, theirs


def topic_peers(X, _):
    yield "topics", lambda: js.LatentDirichletAllocation(10, max_iter=20, random_state=0), [
        lambda method=method: decomposition.LatentDirichletAllocation(10, learning_method=method, max_iter=20, random_state=0)
        for method in ("batch", "online")
    ]


def density_score(model, X, y, all_y):
    return np.mean(model.score_samples(X))


def number_score(model, X, y, all_y):
    return 1 - np.mean((y - model.predict(X)) ** 2) / all_y.var()


def class_score(model, X, y, all_y):
    probabilities = np.maximum(model.predict_proba(X), 1e-15)
    # All models give a class without training rows the same small probability.
    column = {label: k for k, label in enumerate(model.classes_)}
    return np.mean([np.log(row[column[label]]) if label in column else np.log(1e-3) for row, label in zip(probabilities, y)])


def count_score(model, X, y, all_y):
    mean = np.maximum(model.predict(X), 1e-10)
    return -np.mean(np.where(y > 0, y * np.log(np.maximum(y, 1) / mean), 0) - (y - mean))


def topic_score(model, X, y, all_y):
    """Splits counts in halves: every other token of a word is observed, starting with the first token in even columns."""
    odd = np.arange(X.shape[1]) % 2
    seen = (X + 1 - odd) // 2
    proportions = model.transform(seen)
    words = model.components_ / model.components_.sum(1, keepdims=True)
    share = proportions / proportions.sum(1, keepdims=True)
    return np.sum((X - seen) * np.log(share @ words)) / np.sum(X - seen)


TASKS = {
    "density": (densities, density_peers, density_score),
    "numbers": (numbers, number_peers, number_score),
    "classes": (classes, class_peers, class_score),
    "counts": (counts, count_peers, count_score),
    "topics": (corpora, topic_peers, topic_score),
}


def fitted(model, X, y):
    return model.fit(X) if y is None else model.fit(X, y)


def compare(name, task, X, y, epochs):
    _, peers, score = TASKS[task]
    folds = list(KFold(min(10, len(X)), shuffle=True, random_state=0).split(X))
    if task == "density":
        atoms = np.array([np.unique(x, return_counts=True)[1].max() for x in X.T])
        X = X[:, np.all([X[train].std(0) > 0 for train, _ in folds], axis=0) & (atoms < 0.2 * len(X))]
        if X.shape[1] < 2:
            return
    for what, make, theirs in peers(X, epochs):
        own, trusted, others, seconds = [], [], [[] for _ in theirs], [0.0, 0.0]
        for train, test in folds:
            here = None if y is None else y[train]
            there = None if y is None else y[test]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                begun = time.process_time()
                model = fitted(make(), X[train], here)
                seconds[0] += time.process_time() - begun
                own.append(score(model, X[test], there, y))
                trusted.append(model.trusted_)
                begun = time.process_time()
                for scores, other in zip(others, theirs):
                    scores.append(score(fitted(other(), X[train], here), X[test], there, y))
                seconds[1] += time.process_time() - begun
        best = max(others, key=np.mean)
        difference, trusted = np.array(own) - np.array(best), np.array(trusted)
        error = difference.std(ddof=1) / np.sqrt(len(folds))
        kept = difference[trusted]
        enough = len(kept) > 1
        behind = enough and kept.mean() < -2 * kept.std(ddof=1) / np.sqrt(len(kept))
        print(
            f"| {name} | {what} | {np.mean(own):.3f} | {np.mean(best):.3f} | {difference.mean():.3f} ± {error:.3f} | "
            f"{trusted.sum()} of {len(folds)} | {'behind' if behind else ''} | {seconds[0]:.1f} | {seconds[1]:.1f} |",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="", help="names of data sets, all unless given")
    parser.add_argument("--tasks", default=",".join(TASKS), help="what is fitted")
    parser.add_argument("--epochs", type=float, default=300, help="passes of auto-encoders")
    args = parser.parse_args()
    wanted = [name for name in args.data.split(",") if name]
    for task in args.tasks.split(","):
        print(f"\n{task}\n\n| data | estimator | jensen | scikit-learn | difference | trusted | | s | s of scikit-learn |")
        print("| --- | --- | ---: | ---: | ---: | --- | --- | ---: | ---: |")
        for name, load in TASKS[task][0]():
            if not wanted or name in wanted:
                loaded = load()
                X, y = loaded if isinstance(loaded, tuple) else (loaded, None)
                compare(name, task, X, y, args.epochs)


if __name__ == "__main__":
    main()
