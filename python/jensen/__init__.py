"""Fits Bayesian models by variational inference, and reports whether you can trust the result.

>>> import jensen
>>> fit = jensen.fit("model.stan", {"N": 3, "y": [1.0, 2.0, 0.5]})
>>> fit.trusted, fit["mu"].mean()

``fit`` also accepts a density written in Python. ``from_pymc`` and ``from_numpyro`` convert models of PyMC and NumPyro
to such densities. ``Model`` provides values and derivatives of a program's log density for any sampler.
``jensen.sklearn`` has estimators for topics, Gaussian processes, linear models, mixtures and auto-encoders. The package
also installs the command ``jensen``, which has all other features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._jensen import Error, FitError, StanError, __version__

if TYPE_CHECKING:
    from ._bridges import Density, from_numpyro, from_pymc
    from ._fit import Fit, fit, load, resume
    from ._model import BoundModel, Minibatch, Model, minibatch
    from ._regress import regress, regress_curves, regress_effects, regress_predict
    from ._verdict import TrustWarning

__all__ = [
    "BoundModel",
    "Density",
    "Error",
    "Fit",
    "FitError",
    "Minibatch",
    "Model",
    "StanError",
    "TrustWarning",
    "__version__",
    "fit",
    "from_numpyro",
    "from_pymc",
    "load",
    "minibatch",
    "regress",
    "regress_curves",
    "regress_effects",
    "regress_predict",
    "resume",
]

_MODULES = {
    "Density": "_bridges",
    "from_numpyro": "_bridges",
    "from_pymc": "_bridges",
    "Fit": "_fit",
    "TrustWarning": "_verdict",
    "fit": "_fit",
    "load": "_fit",
    "resume": "_fit",
    "BoundModel": "_model",
    "Minibatch": "_model",
    "Model": "_model",
    "minibatch": "_model",
    "regress": "_regress",
    "regress_curves": "_regress",
    "regress_effects": "_regress",
    "regress_predict": "_regress",
}


def __getattr__(name: str) -> Any:
    # The first name that needs NumPy imports it.
    if name in _MODULES:
        import importlib

        value = getattr(importlib.import_module(f"jensen.{_MODULES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'jensen' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
