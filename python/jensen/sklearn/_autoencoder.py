"""Auto-encoders."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from .. import _jensen
from ._base import Array, Judged, Scored, at_least_one, encode, matrix, number, seed_of


@dataclass(eq=False, repr=False, kw_only=True)
class AutoEncoder(Scored, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Judged):
    """An auto-encoder trained by auto-encoding variational Bayes: ``jensen vae fit``.

    NaN marks missing values of X. The bound is that of the other values, and :meth:`impute` replaces them.

    With ``decoder="mixed"`` or ``given``, X may be a data frame with columns of words. Arrays then have the number of a
    word in ``categories_`` in place of the word.

    Parameters
    ----------
    n_components : int
        Number of latent values.
    hidden : sequence of int
        Units of the hidden layers, from the data to the latent values; the decoder has them in reverse. Without hidden
        layers, both networks are linear.
    image : tuple of int, optional
        Numbers of rows and columns of the images that the rows of X are. ``convolutions`` needs it.
    convolutions : sequence of int
        Filters of convolutional layers between the data and the hidden layers, each of which halves the resolution; the
        decoder has them in reverse.
    window : int
        Rows and columns of the windows of convolutional layers.
    activation : str
        Activation of the hidden layers: ``"tanh"``, ``"relu"``, ``"softplus"``, ``"sigmoid"`` or ``"identity"``.
    decoder : str
        Distribution of the data: ``"gaussian=free"``, ``"gaussian=bounded"`` (means in (0, 1)), ``"bernoulli"``
        (values from 0 to 1), ``"student-t"`` (heavy tails, learnt degrees of freedom), ``"student-t=DEGREES"``,
        ``"categorical=K"`` (groups of K indicators), for counts ``"poisson"``, ``"negative-binomial"`` or
        ``"zero-inflated-negative-binomial"``, or ``"mixed"``: numbers are Gaussian, columns of 0 and 1 Bernoulli, and
        words categorical.
    posterior : str
        Distribution of the latent values given a row: ``"gaussian"``, ``"laplace"``, ``"logistic"`` or
        ``"student-t=DEGREES"`` with at least 5 degrees of freedom.
    columns : mapping, optional
        Columns of a mixed table with another distribution. Keys are names of columns or their positions, and values are
        ``"gaussian"``, ``"student-t"``, ``"bernoulli"``, ``"categorical"`` or a distribution of counts. A column in
        ``given`` may be ``"categorical"``.
    given : sequence
        Columns on which the model conditions, by their names or positions. Both networks read them, and the decoder does
        not generate them.
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
    free_bits : float
        Divergence of each latent value, in nats and on average over a minibatch, that the training objective does not
        count. Bounds count it.
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
    categories_ : dict
        For each column of words, its words in order.
    trusted_, verdict_, info_
        The verdict on the fit, and the contents of ``fit.json``.
    """

    n_components: int = field(default=20, kw_only=False)
    hidden: Sequence[int] = (500,)
    image: tuple[int, int] | None = None
    convolutions: Sequence[int] = ()
    window: int = 4
    activation: str = "tanh"
    decoder: str = "gaussian=free"
    posterior: str = "gaussian"
    columns: Mapping[str | int, str] | None = None
    given: Sequence[str | int] = ()
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
    free_bits: float = 0
    validation_fraction: float | None = None
    n_iter_no_change: int | None = None
    max_seconds: float | None = None

    def fit(self, X: Any, y: Any = None) -> AutoEncoder:
        """Trains the networks on the rows of X."""
        at_least_one("n_components", self.n_components)
        if not isinstance(self.hidden, Sequence) or isinstance(self.hidden, str):
            raise TypeError(f"hidden={self.hidden!r}: expected a sequence of whole numbers, such as (500,)")
        if isinstance(self.given, str):
            raise TypeError(f"given={self.given!r}: expected a sequence of columns, such as [{self.given!r}]")
        X = matrix(self, self._numbered(X, reset=True), reset=True, ensure_all_finite="allow-nan")
        kinds = dict.fromkeys(self.categories_, "categorical")
        kinds |= {self._named(column): kind for column, kind in (self.columns or {}).items()}
        self._seed = seed_of(self.random_state)
        request = {
            "latent": self.n_components,
            "hidden": ",".join(str(int(units)) for units in self.hidden) or "none",
            "image": None if self.image is None else "{1}x{0}".format(*self.image),
            "convolutions": ",".join(str(int(filters)) for filters in self.convolutions) or None,
            "window": self.window if self.convolutions else None,
            "activation": self.activation,
            "decoder": self.decoder,
            "posterior": self.posterior,
            "columns": [f"{name}={kind}" for name, kind in kinds.items()],
            "given": [self._named(column) for column in self.given],
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
            "free_bits": float(self.free_bits) or None,
            "patience": self.n_iter_no_change,
            "max_seconds": self.max_seconds,
            "seed": self._seed,
        }
        share = self.validation_fraction
        apart = None if share is None else repr(float(share))
        summary, self._weights = _jensen.fit_autoencoder(X, self._names(), apart, encode(request), self.threads)
        info = self._judge(summary)
        self.bound_ = number(info["bound"])
        self.n_iter_ = max(1, math.ceil(info["epochs"]))
        return self

    def transform(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Means of the latent values of the rows of X, and optionally their standard deviations."""
        means, deviations = _jensen.encode(*self._rows(X), self.threads)
        return (means, deviations) if return_std else means

    def inverse_transform(self, X: Any, given: Mapping[str | int, Any] | None = None) -> Array:
        """Means of rows given latent values, and the values of the columns on which the model conditions."""
        check_is_fitted(self)
        latent = check_array(X, dtype=np.float64, order="C")
        return _jensen.decode(self._weights, latent, self._values(given), self.threads)

    def to_onnx(self, network: Literal["encoder", "decoder"] = "encoder") -> bytes:
        """A network as an ONNX model. The encoder maps ``record`` to ``mean`` and ``log_variance`` of the latent values,
        and the decoder maps ``latent`` to the ``mean`` of a row, in the units of the data."""
        check_is_fitted(self)
        if network not in ("encoder", "decoder"):
            raise ValueError(f"network must be 'encoder' or 'decoder', not {network!r}")
        return _jensen.export_network(self._weights, network == "encoder")

    def impute(self, X: Any) -> Array:
        """The rows of X with missing values replaced by their means given the means of the latent values."""
        weights, X, names = self._rows(X)
        return np.where(np.isnan(X), _jensen.reconstruct(weights, X, names, self.threads), X)

    def sample(
        self,
        n_samples: int = 1,
        *,
        means: bool = False,
        given: Mapping[str | int, Any] | None = None,
        random_state: Any = None,
    ) -> Array:
        """Draws of rows, or with ``means`` their means given drawn latent values. ``given`` has a value of each column
        on which the model conditions. The default seed is that of the fit."""
        check_is_fitted(self)
        at_least_one("n_samples", n_samples)
        seed = self._seed if random_state is None else seed_of(random_state)
        values = self._values(given)
        return _jensen.draw_records(self._weights, n_samples, seed, means, values, self.threads)

    def score_samples(self, X: Any, draws: int = 100) -> Array:
        """Importance-weighted lower bounds of the log density of the rows of X, in nats: the tighter the more draws."""
        at_least_one("draws", draws)
        return _jensen.score_records(*self._rows(X), draws, self._seed, self.threads)

    def _rows(self, X: Any) -> tuple[bytes, Array, list[str]]:
        check_is_fitted(self)
        X = matrix(self, self._numbered(X, reset=False), reset=False, ensure_all_finite="allow-nan")
        return self._weights, X, self._names()

    def _reads_table(self) -> bool:
        """Whether the fit uses the names or the words of columns."""
        return self.decoder == "mixed" or len(self.given) > 0

    def _names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None) if self._reads_table() else None
        return [f"x{i}" for i in range(1, self.n_features_in_ + 1)] if names is None else list(names)

    def _named(self, column: str | int) -> str:
        """The name of a column, which is given by its name or its position."""
        names = self._names()
        if not isinstance(column, numbers.Integral):
            return str(column)
        if not -len(names) <= column < len(names):
            raise ValueError(f"there is no column {column}: X has {len(names)}")
        return names[int(column)]

    def _values(self, given: Mapping[str | int, Any] | None) -> list[str]:
        """Given values in the notation of the command."""
        values = []
        for column, value in (given or {}).items():
            name = self._named(column)
            if name in self.categories_:
                value = self._number(name, value)
            values.append(f"{name}={value}")
        return values

    def _number(self, name: str, word: Any) -> int:
        """The number of a word of a column."""
        words = self.categories_[name]
        if word not in words:
            raise ValueError(f"the column {name!r} has {word!r}, but X had only {', '.join(map(repr, words[:12]))}")
        return words.index(word)

    def _numbered(self, X: Any, *, reset: bool) -> Any:
        """Replaces the words of a data frame by their numbers."""
        if reset:
            self.categories_: dict[str, list[str]] = {}
        names = getattr(X, "columns", None)
        if not self._reads_table() or names is None or not all(isinstance(name, str) for name in names):
            return X
        columns: dict[str, Any] = {}
        for name in names:
            cells = np.asarray(X[name])
            words = [isinstance(cell, str) for cell in cells] if cells.dtype.kind in "OUT" else []
            if reset and any(words):
                self.categories_[name] = sorted({str(cell) for cell, is_word in zip(cells, words) if is_word})
            if name in self.categories_:
                present = words or [False] * len(cells)
                missing = [not is_word and (cell is None or cell != cell) for cell, is_word in zip(cells, present)]
                columns[name] = [
                    math.nan if absent else self._number(name, str(cell) if is_word else cell)
                    for cell, absent, is_word in zip(cells, missing, present)
                ]
            else:
                columns[name] = X[name]
        return type(X)(columns) if self.categories_ else X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)
