"""Topics of documents."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from .. import _jensen
from .._regress import _columns
from ._base import Array, Judged, at_least_one, encode, number, seed_of

#: The path of a corpus, or a matrix of counts with one row per document.
Documents = Any


@dataclass(eq=False, repr=False, kw_only=True)
class LatentDirichletAllocation(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Judged):
    """Latent Dirichlet allocation by stochastic variational inference, as in ``jensen topics fit``.

    X is a dense or sparse matrix of counts with one row per document and one column per word, or the path of a corpus
    that ``jensen topics build`` wrote. A sparse matrix stays sparse. The same documents and the same ``random_state``
    give the topics of the command, bit for bit.

    Parameters
    ----------
    n_components : int
        Number of topics.
    doc_topic_prior, topic_word_prior : float, optional
        Dirichlet parameters of topic proportions and word proportions. The defaults are ``5 / n_components``, but at
        most 0.1 and 0.05. With ``inference="mean-field"`` both defaults are ``1 / n_components``.
    learn_alpha, learn_eta : str
        ``"fixed"``, or ``"symmetric"`` to learn one number for all topics (``learn_alpha``) or words (``learn_eta``)
        after the first pass. ``learn_alpha="asymmetric"`` learns a number for each topic. ``learn_alpha="hdp"`` learns
        a number for each topic with the prior of a hierarchical Dirichlet process, which uses at most ``n_components``
        topics; ``info_["topics_found"]`` is the number that hold 99 % of the tokens.
    inference : str, optional
        ``"cvb0"``, collapsed variational inference of zeroth order, or ``"mean-field"``, which finds fewer topics. The
        default is ``"cvb0"``, or ``"mean-field"`` with a temperature policy, because ``"cvb0"`` supports none.
    start : str, optional
        Initial topics: ``"documents"`` for words of dissimilar documents, or ``"random"``. The default is
        ``"documents"``, or ``"random"`` with ``inference="mean-field"``.
    mean_change_tol : float
        Convergence tolerance of a document's local step: the step ends when expected counts change by less than this
        share of the document's tokens.
    temper : str
        Temperature policy, in the notation of the command: ``"none"``, ``"anneal=PASSES[:FROM]"``,
        ``"schedule=PASS:T,…"``, ``"global[=PASSES[:HOTTEST[:TEMPERATURES]]]"`` or
        ``"local[=PASSES[:TEMPERATURES[:A:B]]]"``.
    max_iter : float
        Number of passes over the documents. Fractions are allowed.
    batch_size : int
        Number of documents in a minibatch.
    learning_decay, learning_offset : float
        Parameters κ and τ of the step sizes (τ + t)^−κ.
    max_seconds : float, optional
        Time limit. A fit that reaches it is not trusted.
    random_state : int, RandomState or None
        Seed. None draws a seed from NumPy's global generator.
    threads : int, optional
        Number of threads. The default is all threads of the machine. Results do not depend on it.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Dirichlet parameters λ of the topics' word proportions.
    vocabulary_ : list of str
        Word of each column, after a fit to a corpus.
    doc_topic_prior_, topic_word_prior_ : float or array, float
        Dirichlet parameters of the fit. ``doc_topic_prior_`` is an array if the topics have different parameters.
    bound_ : float
        Evidence lower bound of the untempered model in nats, estimated from a sample of the documents.
    n_iter_ : int
        Number of passes, rounded up.
    n_batch_iter_ : int
        Number of minibatches, including earlier calls of ``partial_fit``.
    trusted_, verdict_, info_
        The verdict on the fit, and the contents of ``fit.json``.
    """

    n_components: int = field(default=10, kw_only=False)
    doc_topic_prior: float | None = None
    topic_word_prior: float | None = None
    learn_alpha: str = "fixed"
    learn_eta: str = "fixed"
    inference: str | None = None
    start: str | None = None
    mean_change_tol: float = 0.01
    temper: str = "none"
    max_iter: float = 10
    batch_size: int = 128
    learning_decay: float = 0.7
    learning_offset: float = 10.0
    max_seconds: float | None = None

    def fit(self, X: Documents, y: Any = None) -> LatentDirichletAllocation:
        """Learn topics from documents."""
        at_least_one("n_components", self.n_components)
        documents = self._documents(X, reset=True)
        return self._learn(documents, None, self.temper, self.max_iter)

    def partial_fit(self, X: Documents, y: Any = None) -> LatentDirichletAllocation:
        """Learn from new documents in one pass, as ``jensen topics update`` does.

        The sequence of step sizes continues, and the topics represent old and new documents together.
        """
        new = not hasattr(self, "components_")
        documents = self._documents(X, reset=new)
        # A temperature schedule suits a new fit only; an update starts with learnt topics.
        return self._learn(documents, None if new else self._model(), self.temper if new else "none", 1)

    def _learn(self, documents: Any, start: _jensen.Topics | None, temper: str, passes: float) -> LatentDirichletAllocation:
        before = 0 if start is None else start[3]
        seed = seed_of(self.random_state)
        alpha: float | None = self.doc_topic_prior
        eta, inference = self.topic_word_prior, self.inference
        if start:
            # Updates use the settings of the first fit.
            alpha, eta, inference = start[1][0], start[2], "cvb0" if start[6] else "mean-field"
        request = {
            "topics": self.n_components,
            "alpha": None if alpha is None else repr(float(alpha)),
            "eta": None if eta is None else repr(float(eta)),
            "learn_alpha": self.learn_alpha,
            "learn_eta": self.learn_eta,
            "inference": inference,
            "start": self.start,
            "tolerance": float(self.mean_change_tol),
            "temper": temper,
            "passes": float(passes),
            "batch": self.batch_size,
            "tau": float(self.learning_offset),
            "kappa": float(self.learning_decay),
            "max_seconds": self.max_seconds,
            "seed": seed,
        }
        result = _jensen.fit_topics(documents, start, encode(request), self.threads)
        summary, components, priors, self.topic_word_prior_, steps, population, words, self._collapsed = result
        self.doc_topic_prior_ = priors[0] if len(set(priors)) == 1 else np.array(priors)
        self.components_: Array = components
        self.n_batch_iter_ = int(steps)
        self.n_documents_ = float(population)
        if words is not None:
            self.vocabulary_ = words
            self.n_features_in_ = len(words)
        elif start is None and hasattr(self, "vocabulary_"):
            # An earlier fit to a corpus left it.
            del self.vocabulary_
        info = self._judge(summary)
        self.bound_ = number(info["elbo"])
        batches = math.ceil(info["documents"] / self.batch_size)
        self.n_iter_ = math.ceil((self.n_batch_iter_ - before) / max(batches, 1))
        self._seed = seed
        return self

    def transform(self, X: Documents) -> Array:
        """Return expected topic proportions, one row per document. For a corpus, the rows are its training documents."""
        check_is_fitted(self)
        return _jensen.topic_proportions(self._documents(X, reset=False), self._model(), self.threads)

    def score(self, X: Documents, y: Any = None) -> float:
        """Return the mean log predictive probability of a word, in nats, by document completion.

        The method infers the topics of each document from half of its tokens, and scores the other half. For a corpus it
        scores the held-out documents. Scores of different X are comparable, unlike scores of scikit-learn, which are
        bounds that grow with the number of documents.
        """
        check_is_fitted(self)
        documents = self._documents(X, reset=False)
        score, _, words, _ = _jensen.topic_completion(documents, self._model(), self._seed, self.threads)
        if words == 0:
            raise ValueError("no document has two words, so none can be scored")
        return score

    def perplexity(self, X: Documents) -> float:
        """Return the perplexity, exp(−score)."""
        return math.exp(-self.score(X))

    def top_words(self, n: int = 10, names: Any = None) -> list[list[str]]:
        """Return the ``n`` most probable words of each topic. ``names`` has the words of the columns if X had no names."""
        check_is_fitted(self)
        if names is None:
            names = getattr(self, "vocabulary_", getattr(self, "feature_names_in_", None))
        if names is None:
            names = [str(column) for column in range(self.components_.shape[1])]
        order = np.argsort(-self.components_, axis=1, kind="stable")[:, :n]
        return [[str(names[column]) for column in row] for row in order]

    def effects(self, X: Documents, covariates: Any, formula: str, prior_sd: float = 1.0) -> dict[str, Any]:
        """Estimate how covariates change the shares of topics, as ``jensen topics effects`` does.

        Each row of X has its own Dirichlet prior of topic proportions, whose parameters depend on the covariates of the
        row. The topics stay as they are.

        Parameters
        ----------
        X : array or sparse matrix
            Counts, which need not be those of the fit.
        covariates : data frame, mapping or path
            A table with one row for each row of X.
        formula : str
            The covariates, such as ``"~ year + source"``.
        prior_sd : float
            Prior standard deviation of a coefficient, for columns in units of their standard deviations.

        Returns
        -------
        dict
            The contents of ``effects.json``. ``["effects"]`` has a row for each column and topic: ``mean``, ``sd``,
            ``q05`` and ``q95`` of the change of the topic's log share per unit of the column. ``["shares"]`` has the
            expected shares along each column, and ``["trusted"]`` the verdict.
        """
        check_is_fitted(self)
        documents = self._documents(X, reset=False)
        names = getattr(self, "vocabulary_", getattr(self, "feature_names_in_", range(self.components_.shape[1])))
        columns, path = _columns(covariates)
        words = [str(name) for name in names]
        text = _jensen.topic_effects(
            documents, self._model(), words, columns, path, formula, float(prior_sd), self._seed, self.threads
        )
        made: dict[str, Any] = json.loads(text)
        return made

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def _model(self) -> _jensen.Topics:
        components = np.ascontiguousarray(self.components_, dtype=np.float64)
        alpha = np.broadcast_to(self.doc_topic_prior_, len(components)).tolist()
        words = getattr(self, "vocabulary_", None)
        eta = float(self.topic_word_prior_)
        return (components, alpha, eta, self.n_batch_iter_, self.n_documents_, words, self._collapsed)

    def _documents(self, X: Documents, *, reset: bool) -> Any:
        """Returns the path of a corpus, or the matrix in compressed form: starts of rows, columns, counts, number of columns."""
        if isinstance(X, (str, os.PathLike)):
            return os.fspath(X)
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
        check_non_negative(X, type(self).__name__)
        rows = sparse.csr_matrix(X)
        if not (rows.has_canonical_format and rows.data.all()):
            rows = rows.copy()
            rows.sum_duplicates()
            rows.eliminate_zeros()
        starts: npt.NDArray[np.int64] = rows.indptr.astype(np.int64)
        return starts, rows.indices.astype(np.uint32), rows.data.astype(np.float32), rows.shape[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

