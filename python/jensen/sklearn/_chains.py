"""Hidden Markov models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import DensityMixin

from ._base import Array, matrix
from ._points import Points, covariances, shape_of


#: Emissions of real numbers, whose columns can be standardised.
_REAL = ("gaussian", "student_t")


@dataclass(eq=False, repr=False, kw_only=True)
class HiddenMarkov(DensityMixin, Points):
    """A hidden Markov model.

    The rows of X are the steps of one sequence or, with ``lengths``, of several concatenated sequences.

    Parameters
    ----------
    n_components : int
        Number of states.
    emissions : {"gaussian", "student_t", "poisson", "negative_binomial", "bernoulli", "categorical", "multinomial"}
        Distribution of an emission given its state. The columns are independent given the state, except for
        ``"gaussian"`` and ``"multinomial"``.
    covariance_type : {"full", "tied", "diag", "spherical"}
        Structure of the covariance matrices of Gaussian emissions, as for ``BayesianGaussianMixture``.
    standardise : bool
        Whether to standardise the columns. Results are always in the units of X.
    concentration : float, optional
        Dirichlet parameter of the initial probabilities and of each row of transition probabilities. The default is 1.
    n_init, temper, max_iter, tol, random_state, threads
        As for ``BayesianGaussianMixture``.

    Attributes
    ----------
    startprob_, transmat_ : array
        Posterior means of the initial and transition probabilities.
    means_, covariances_ : array
        Posterior means of Gaussian emissions' means, and inverses of their expected precisions.
    emissions_ : list of dict
        The distribution of an emission in each state, as in ``fit.json``.
    lower_bound_, converged_, n_iter_, trusted_, verdict_, info_
        As for ``BayesianGaussianMixture``.
    """

    n_components: int = field(default=2, kw_only=False)
    emissions: str = "gaussian"
    covariance_type: str = "full"
    standardise: bool = True
    concentration: float | None = None

    _kind = "chains"

    def _own(self) -> dict[str, Any]:
        return {
            "states": self.n_components,
            "emissions": self.emissions,
            "covariance": shape_of(self.covariance_type) if self.emissions == "gaussian" else None,
            "standardise": ("on" if self.standardise else "off") if self.emissions in _REAL else None,
            "concentration": self.concentration,
        }

    def fit(self, X: Any, y: Any = None, lengths: Any = None, labels: Any = None) -> HiddenMarkov:
        """Fit the model to the sequences in X. ``labels`` has the known state of each step, where -1 is unknown."""
        X = matrix(self, X, reset=True)
        known = None if labels is None else [int(label) for label in labels]
        if known is not None and len(known) != len(X):
            raise ValueError(f"labels must have one element for each of the {len(X)} rows of X")
        chain = self._learn(X, _steps(X, lengths), labels=known)["chain"]
        self.startprob_ = np.array(chain["initial"])
        self.transmat_ = np.array(chain["transitions"])
        self.emissions_ = chain["emissions"]
        if self.emissions == "gaussian":
            self.means_ = np.array([row["mean"] for row in self.emissions_])
            self.covariances_ = covariances(self.emissions_, X.shape[1], self.covariance_type)
        return self

    def _marginals(self, X: Any, lengths: Any) -> tuple[Array, Array]:
        X = matrix(self, X, reset=False)
        return self._explain(X, _steps(X, lengths))

    def predict_proba(self, X: Any, lengths: Any = None) -> Array:
        """Return the probabilities of the states at each step, given the whole sequence."""
        return self._marginals(X, lengths)[0]

    def predict(self, X: Any, lengths: Any = None) -> npt.NDArray[np.int64]:
        """Return the state with the largest marginal probability at each step."""
        states: npt.NDArray[np.int64] = self.predict_proba(X, lengths).argmax(axis=1)
        return states

    def score(self, X: Any, y: Any = None, lengths: Any = None) -> float:
        """Return a lower bound on the log predictive density of the sequences, in nats per step."""
        bounds = self._marginals(X, lengths)[1]
        return float(bounds.sum() / len(X))


def _steps(X: Array, lengths: Any) -> list[int]:
    """Returns the lengths of the sequences in X."""
    if lengths is None:
        return [len(X)]
    steps = [int(n) for n in lengths]
    if min(steps, default=0) < 1 or sum(steps) != len(X):
        raise ValueError(f"lengths must be positive and add up to the {len(X)} rows of X")
    return steps
