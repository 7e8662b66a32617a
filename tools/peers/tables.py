"""Ten-fold scores of estimators of jensen.sklearn on scikit-learn's toy data sets at raw scale, beside scikit-learn's own.

    python tools/peers/tables.py [--data iris,wine] [--epochs 300]

needs scikit-learn and the package jensen. For each data set (iris, wine, breast_cancer, diabetes, linnerud, digits) each estimator is
fitted to nine tenths of the rows and scored on the other tenth: the mean log density of a row, in nats. Printed are the mean over folds
with the standard error of the paired difference to the best comparable estimator of scikit-learn, and in how many folds the fit was trusted.
A row is `behind` where it is more than two standard errors below the best and was trusted.

Comparable: BayesianGaussianMixture with scikit-learn's GaussianMixture and BayesianGaussianMixture of as many components on
standardised columns (those of the training rows, with the Jacobian); AutoEncoder with FactorAnalysis and PCA of as many factors. Columns that are constant in
a training set, which have no density, are left out for all.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn import datasets, mixture
from sklearn.decomposition import PCA, FactorAnalysis
from sklearn.model_selection import KFold

import jensen.sklearn as js


def tables():
    yield "iris", datasets.load_iris().data
    yield "wine", datasets.load_wine().data
    yield "breast_cancer", datasets.load_breast_cancer().data
    yield "diabetes", datasets.load_diabetes(scaled=False).data
    yield "linnerud", np.hstack([datasets.load_linnerud().data, datasets.load_linnerud().target])
    yield "digits", datasets.load_digits().data


class Standardised:
    """An estimator of scikit-learn on standardised columns, with densities of the rows as they are."""

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X):
        self.mean, self.sd = X.mean(0), X.std(0)
        self.estimator.fit((X - self.mean) / self.sd)
        return self

    def score_samples(self, X):
        return self.estimator.score_samples((X - self.mean) / self.sd) - np.log(self.sd).sum()


def estimators(rows, columns, epochs):
    """Pairs of ours and theirs, by what is compared."""
    k = 3
    ours = {
        "mixture, full": lambda: js.BayesianGaussianMixture(k, random_state=0),
        "mixture, diagonal": lambda: js.BayesianGaussianMixture(k, covariance_type="diag", random_state=0),
    }
    theirs = {}
    for name, shape in {"mixture, full": "full", "mixture, diagonal": "diag"}.items():
        theirs[name] = [
            lambda shape=shape: Standardised(mixture.GaussianMixture(k, covariance_type=shape, n_init=5, random_state=0)),
            lambda shape=shape: Standardised(
                mixture.BayesianGaussianMixture(n_components=k, covariance_type=shape, n_init=5, max_iter=500, random_state=0)
            ),
        ]
    latent = min(2, columns - 1)
    ours["auto-encoder"] = lambda: js.AutoEncoder(
        latent, hidden=(32,), max_iter=epochs, batch_size=min(50, rows), optimizer="adam", learning_rate=0.003, random_state=0
    )
    theirs["auto-encoder"] = [
        lambda: Standardised(FactorAnalysis(latent, random_state=0)),
        lambda: Standardised(PCA(latent, random_state=0)),
    ]
    return ours, theirs


def compare(name, X, epochs):
    folds = list(KFold(10, shuffle=True, random_state=0).split(X))
    stays = np.all([X[train].std(0) > 0 for train, _ in folds], axis=0)
    X = X[:, stays]
    ours, theirs = estimators(len(X), X.shape[1], epochs)
    for what, make in ours.items():
        own, trusted, others = [], 0, [[] for _ in theirs[what]]
        for train, test in folds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = make().fit(X[train])
                own.append(np.mean(fitted.score_samples(X[test])))
                trusted += fitted.trusted_
                for scores, other in zip(others, theirs[what]):
                    scores.append(np.mean(other().fit(X[train]).score_samples(X[test])))
        best = max(others, key=np.mean)
        difference = np.array(own) - np.array(best)
        error = difference.std(ddof=1) / np.sqrt(len(folds))
        behind = "behind" if difference.mean() < -2 * error and trusted else ""
        print(
            f"| {name} | {what} | {np.mean(own):.3f} | {np.mean(best):.3f} | {difference.mean():.3f} ± {error:.3f} | "
            f"{trusted} of 10 | {behind} |",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="", help="names of data sets, all unless given")
    parser.add_argument("--epochs", type=float, default=300, help="passes of auto-encoders")
    args = parser.parse_args()
    wanted = [name for name in args.data.split(",") if name]
    print("| data | estimator | jensen | best of scikit-learn | difference | trusted | |")
    print("| --- | --- | ---: | ---: | ---: | --- | --- |")
    for name, X in tables():
        if not wanted or name in wanted:
            compare(name, X, args.epochs)


if __name__ == "__main__":
    main()
