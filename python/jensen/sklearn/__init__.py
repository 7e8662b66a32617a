"""Estimators with scikit-learn's interface: topics, Gaussian processes, linear models, mixtures and auto-encoders.

>>> from jensen.sklearn import LatentDirichletAllocation
>>> topics = LatentDirichletAllocation(20, random_state=0).fit(counts)
>>> topics.trusted_, topics.transform(counts)

Each estimator runs a fit job of the command. After ``fit``, ``trusted_`` and ``verdict_`` have the verdict, and ``info_``
has the contents of ``fit.json``. A fit that is not trusted issues a ``TrustWarning``. The same seed gives the same
results, bit for bit, on any number of threads.
"""

from __future__ import annotations

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as error:
    raise ImportError("this needs scikit-learn: pip install 'jensen[sklearn]'") from error

from ._autoencoder import AutoEncoder
from ._chains import HiddenMarkov
from ._factors import FactorialMixture
from ._kernels import Constant, Kernel, Linear, Matern, RBF
from ._linear import BayesianLinear, BayesianLogistic, BayesianPoisson
from ._mixture import BayesianGaussianMixture
from ._processes import GaussianProcessClassifier, GaussianProcessCountRegressor, GaussianProcessRegressor
from ._topics import LatentDirichletAllocation

__all__ = [
    "RBF",
    "AutoEncoder",
    "BayesianGaussianMixture",
    "BayesianLinear",
    "BayesianLogistic",
    "BayesianPoisson",
    "Constant",
    "FactorialMixture",
    "GaussianProcessClassifier",
    "GaussianProcessCountRegressor",
    "GaussianProcessRegressor",
    "HiddenMarkov",
    "Kernel",
    "LatentDirichletAllocation",
    "Linear",
    "Matern",
]
