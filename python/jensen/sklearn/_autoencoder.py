"""Auto-encoders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from .. import _jensen
from ._base import Array, Judged, Scored, at_least_one, encode, matrix, number, seed_of


@dataclass(eq=False, repr=False, kw_only=True)
class AutoEncoder(Scored, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Judged):
    """An auto-encoder trained by auto-encoding variational Bayes: ``jensen vae fit``.

    NaN marks missing values of X. The bound is that of the other values, and :meth:`impute` replaces them.

    Parameters
    ----------
    n_components : int
        Number of latent values.
    hidden : sequence of int
        Units of the hidden layers, from the data to the latent values; the decoder has them in reverse. Without hidden
        layers, both networks are linear.
    activation : str
        Activation of the hidden layers: ``"tanh"``, ``"relu"``, ``"softplus"``, ``"sigmoid"`` or ``"identity"``.
    decoder : str
        Distribution of the data: ``"gaussian=free"``, ``"gaussian=bounded"`` (means in (0, 1)), ``"bernoulli"``
        (values from 0 to 1), ``"categorical=K"`` (groups of K indicators), or for counts ``"poisson"``,
        ``"negative-binomial"`` or ``"zero-inflated-negative-binomial"``.
    library_size : bool
        Whether the means of counts are shares of the total of a row.
    standardise : bool
        Whether to standardise the columns for a decoder with free means. Results are always in the units of X.
    max_iter : float
        Passes over the data.
    batch_size : int
        Rows of a minibatch.
    optimizer : {"adagrad", "adam", "sgd"}
        Optimiser.
    learning_rate : float, optional
        Step size of the optimiser. The defaults are 0.02, 0.001 and 0.0001.
    samples : int
        Draws of the latent values per row.
    temper : str, optional
        ``"anneal=PASSES"`` or ``"anneal=PASSES:FROM"``: the temperature of the likelihood falls to 1.
    warm_up : float, optional
        Passes during which the weight of the divergence rises from 0 to ``beta``.
    beta : float
        Weight of the divergence in the training objective. Bounds and scores are those of the weight 1.
    validation_fraction : float, optional
        Share of the rows reserved for validation. ``info_["validation_bound"]`` is their bound.
    n_iter_no_change : int, optional
        Number of validations without a better bound after which training ends and keeps the best weights.
    max_seconds : float, optional
        Time limit, after which the fit stops and is not trusted.
    random_state : int, RandomState or None
        Seed; None draws one from NumPy's generator.
    threads : int, optional
        Number of threads. The default is all threads of the machine. Results do not depend on it.

    Attributes
    ----------
    bound_ : float
        Lower bound on the log density of a row, in nats, over the training rows.
    n_iter_ : int
        Number of passes, rounded up.
    trusted_, verdict_, info_
        The verdict on the fit, and the contents of ``fit.json``.
    """

    n_components: int = field(default=20, kw_only=False)
    hidden: Sequence[int] = (500,)
    activation: str = "tanh"
    decoder: str = "gaussian=free"
    library_size: bool = False
    standardise: bool = True
    max_iter: float = 100
    batch_size: int = 100
    optimizer: str = "adagrad"
    learning_rate: float | None = None
    samples: int = 1
    temper: str | None = None
    warm_up: float | None = None
    beta: float = 1
    validation_fraction: float | None = None
    n_iter_no_change: int | None = None
    max_seconds: float | None = None

    def fit(self, X: Any, y: Any = None) -> AutoEncoder:
        """Trains the networks on the rows of X."""
        at_least_one("n_components", self.n_components)
        if not isinstance(self.hidden, Sequence) or isinstance(self.hidden, str):
            raise TypeError(f"hidden={self.hidden!r}: expected a sequence of whole numbers, such as (500,)")
        X = matrix(self, X, reset=True, ensure_all_finite="allow-nan")
        self._seed = seed_of(self.random_state)
        request = {
            "latent": self.n_components,
            "hidden": ",".join(str(int(units)) for units in self.hidden) or "none",
            "activation": self.activation,
            "decoder": self.decoder,
            "library_size": "on" if self.library_size else None,
            "standardise": None if self.standardise else "off",
            "epochs": float(self.max_iter),
            "batch": self.batch_size,
            "optimizer": self.optimizer,
            "step_size": self.learning_rate,
            "samples": self.samples,
            "temper": self.temper,
            "warm_up": self.warm_up,
            "beta": None if self.beta == 1 else float(self.beta),
            "patience": self.n_iter_no_change,
            "max_seconds": self.max_seconds,
            "seed": self._seed,
        }
        share = self.validation_fraction
        apart = None if share is None else repr(float(share))
        summary, self._weights = _jensen.fit_autoencoder(X, apart, encode(request), self.threads)
        info = self._judge(summary)
        self.bound_ = number(info["bound"])
        self.n_iter_ = max(1, math.ceil(info["epochs"]))
        return self

    def transform(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Means of the latent values of the rows of X, and optionally their standard deviations."""
        means, deviations = _jensen.encode(*self._rows(X), self.threads)
        return (means, deviations) if return_std else means

    def inverse_transform(self, X: Any) -> Array:
        """Means of rows given latent values."""
        check_is_fitted(self)
        latent = check_array(X, dtype=np.float64, order="C")
        return _jensen.decode(self._weights, latent, self.threads)

    def impute(self, X: Any) -> Array:
        """The rows of X with missing values replaced by their means given the means of the latent values."""
        weights, X = self._rows(X)
        return np.where(np.isnan(X), _jensen.reconstruct(weights, X, self.threads), X)

    def sample(self, n_samples: int = 1, *, means: bool = False, random_state: Any = None) -> Array:
        """Draws of rows, or with ``means`` their means given drawn latent values. The default seed is that of the
        fit."""
        check_is_fitted(self)
        at_least_one("n_samples", n_samples)
        seed = self._seed if random_state is None else seed_of(random_state)
        return _jensen.draw_records(self._weights, n_samples, seed, means, self.threads)

    def score_samples(self, X: Any, draws: int = 100) -> Array:
        """Importance-weighted lower bounds of the log density of the rows of X, in nats: the tighter the more draws."""
        at_least_one("draws", draws)
        return _jensen.score_records(*self._rows(X), draws, self._seed, self.threads)

    def _rows(self, X: Any) -> tuple[bytes, Array]:
        X = matrix(self, X, reset=False, ensure_all_finite="allow-nan")
        return self._weights, X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)
