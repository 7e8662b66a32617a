"""Fits of Stan programs and of densities in Python."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from . import _jensen, _stored
from ._bridges import Density
from ._data import Data, as_array, paths_of, read_program, split_data
from ._extra import extra
from ._model import Model, unfolded
from ._settings import encode
from ._verdict import verdict, warn
from .methods import Method, expanded

if TYPE_CHECKING:
    import pandas as pd

    from .families import Family

Array = npt.NDArray[np.float64]

#: A callback with the arguments iteration, stage, estimate of the ELBO in nats, and seconds since the start.
Progress = Callable[[int, str, float, float], None]


class Fit:
    """A finished fit with its draws, verdict and diagnostics.

    ``fit["theta"]`` returns the draws of a variable as an array of shape ``(draws, *shape)``.
    """

    def __init__(
        self,
        summary: dict[str, Any],
        variables: list[tuple[str, tuple[int, ...], str, bool]],
        drawn: tuple[Array, Array, Array],
        *,
        refined: bool,
        history: list[tuple[int, str, float, float]],
        besides: _jensen.Besides | None = None,
        report: str | None = None,
        data: dict[str, Any] | None = None,
        handle: _jensen.Fitted | None = None,
    ) -> None:
        self._summary = summary
        self._variables = variables
        self._draws, self._log_p, self._log_q = drawn
        self._refined = refined
        self._history = history
        self._besides = besides
        self._report = report
        self._data = data or {}
        self._handle = handle
        # Coordinates, dimensions and observed data of the model.
        self._labels: tuple[Mapping[str, Sequence[Any]], Mapping[str, Sequence[str]], Mapping[str, Any]] = ({}, {}, {})

    # The verdict and its diagnostics.

    @property
    def trusted(self) -> bool:
        """Whether the draws pass all checks."""
        return bool(self._summary["trusted"])

    @property
    def converged(self) -> bool:
        """Whether the optimiser met its stopping rule."""
        return bool(self._summary["converged"])

    @property
    def verdict(self) -> str:
        """The verdict as text, with the reasons if the fit is not trusted."""
        return verdict(self._summary)

    @property
    def warnings(self) -> list[str]:
        """The reasons not to trust the fit, if any, followed by remarks."""
        return list(self._summary.get("warnings", []))

    @property
    def status(self) -> str:
        """How the run ended, with advice."""
        return str(self._summary["status"])

    @property
    def elbo(self) -> float:
        """Evidence lower bound (ELBO) of the approximation in nats, with all constants."""
        return _number(self._summary["elbo"])

    @property
    def elbo_se(self) -> float:
        """Monte-Carlo standard error of the ELBO in nats."""
        return _number(self._summary["elbo_se"])

    @property
    def khat(self) -> float:
        """Pareto k̂ of the approximation's importance weights."""
        return _number(self._summary["khat"])

    @property
    def refined(self) -> bool:
        """Whether the draws are refined, that is, draws of the posterior instead of the approximation."""
        return self._refined

    @property
    def refinement(self) -> dict[str, Any] | None:
        """Log evidence, KL divergence, nested R̂ and effective sample size of the refinement, or None without one."""
        return self._summary.get("refinement")

    @property
    def seconds(self) -> dict[str, float]:
        """Wall-clock seconds of each part of the fit."""
        return dict(self._summary["seconds"])

    @property
    def calls(self) -> int:
        """Number of oracle calls. One call is a batch of 256 gradients, or equivalent work."""
        return int(self._summary["oracle_calls"])

    @property
    def info(self) -> dict[str, Any]:
        """The contents of ``fit.json``, as the command writes it."""
        return json.loads(json.dumps(self._summary))  # type: ignore[no-any-return]

    @property
    def history(self) -> list[tuple[int, str, float, float]]:
        """The course of the optimisation: tuples of iteration, stage, seconds and estimate of the ELBO in nats."""
        return list(self._history)

    # The draws.

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        column = 0
        for known, shape, _, integer in self._variables:
            size = int(np.prod(shape, dtype=int))
            if known == name:
                array = unfolded(self._draws[:, column : column + size], shape)
                return array.astype(np.int64) if integer else array
            column += size
        raise KeyError(f"the fit has no variable {name!r}: expected one of {', '.join(self.keys())}")

    def keys(self) -> list[str]:
        """Names of the variables."""
        return [name for name, *_ in self._variables]

    def items(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """Pairs of the name of a variable and its draws."""
        return ((name, self[name]) for name in self)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self._variables)

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    @property
    def log_p(self) -> Array:
        """Log density of the model at each draw, on the unconstrained scale, in nats."""
        return self._log_p

    @property
    def log_q(self) -> Array:
        """Log density of the approximation at each draw, on the unconstrained scale, in nats."""
        return self._log_q

    def draws(self, n: int, *, seed: int | None = None, resample: bool = False) -> dict[str, Array]:
        """Draws from the approximation again, and returns the draws by name.

        Args:
            n: Number of draws.
            seed: Seed of the draws. With the seed of the fit, the default, the first draws equal the draws of an
                unrefined fit.
            resample: Whether to resample the draws by their importance weights.
        """
        if n < 1:
            raise ValueError(f"{n} draws: expected at least 1")
        if self._handle is None:
            raise ValueError("a loaded or unpickled fit cannot draw again: use `jensen draws` with the folder of the fit")
        if self._refined:
            warn("these draws come from the approximation, but the draws of the fit are refined")
        table, log_p, log_q = self._handle.more_draws(n, seed, resample)
        other = Fit(
            self._summary, self._variables, (table, log_p, log_q), refined=False, history=[], data=self._data
        )
        return {name: other[name] for name in other}

    def generate(
        self,
        model: str | os.PathLike[str] | Model,
        data: Data = None,
        *,
        include: Sequence[str | os.PathLike[str]] = (),
        save: str | Sequence[str] = "generated",
        seed: int | None = None,
        threads: int | None = None,
    ) -> dict[str, npt.NDArray[Any]]:
        """Computes generated quantities of a program at the draws of this fit, such as predictions for new data.

        Args:
            model: The program. The fit must have all parameters of the program. Jensen ignores its model block.
            data: The data of the program, as for ``jensen.fit``. The default is the data of the fit.
            include: Folders to search for included files.
            save: The variables to compute: ``"generated"``, ``"parameters"``, ``"transformed"``, ``"all"``, or names.
            seed: Seed of the random numbers. The default is the seed of the fit.
            threads: Number of threads. The default is all threads of the machine.

        Returns:
            Values by name. With the seed of the fit and all draws, the fitted program gives the values of the fit. The
            method omits draws that the program rejects, and warns. ``jensen generate`` gives the same values.

        Raises:
            StanError: The program is wrong, or the data do not fit its declarations.
            ValueError: The fit lacks a parameter of the program, or its size differs.
        """
        if isinstance(model, Model):
            name, text, folders = model._name, model._text, list(model._include)
        else:
            name, text = read_program(model)
            folders = []
        arrays, path = split_data(data)
        if arrays is None and path is None:
            arrays = self._data
        folders += [os.fspath(folder) for folder in include]
        words = save if isinstance(save, str) else ",".join(save)
        chosen = int(self._summary["seed"]) if seed is None else seed
        columns = [(known, list(shape)) for known, shape, *_ in self._variables]
        draws = (self._draws, self._log_p, self._log_q)
        variables, (table, _, _), rejected, reason = _jensen.generate(
            name, text, folders, arrays, path, columns, *draws, words, chosen, threads
        )
        if rejected:
            warn(f"the program rejects {rejected} of {len(self._draws)} draws, the first because: {reason}")
        result, column = {}, 0
        for known, shape, _, integer in variables:
            size = int(np.prod(shape, dtype=int))
            array = unfolded(table[:, column : column + size], tuple(shape))
            result[known] = array.astype(np.int64) if integer else array
            column += size
        return result

    def summary(self) -> pd.DataFrame:
        """Summarises every scalar in a pandas data frame: mean, sd and quantiles, as in ``fit.json``.

        Where known, ``mcse_mean`` is the Monte-Carlo standard error of the mean, ``ess`` is the effective sample size,
        and ``r_hat`` is R̂ of refined draws. ``tail_khat`` is the tail index of the draws. Summaries of a default fit
        use importance weights. With long tails, a mean or sd may not exist, or the draws may not determine it. The data
        frame then has NaN for it, and ``warnings`` reports it. Use quantiles in that case.
        """
        pandas = extra("pandas", "pandas")
        heads = {
            "mean": "mean",
            "sd": "sd",
            "q05": "5%",
            "q50": "50%",
            "q95": "95%",
            "mcse": "mcse_mean",
            "ess": "ess",
            "rhat": "r_hat",
            "tail_khat": "tail_khat",
        }
        parameters = self._summary["parameters"]
        known = [key for key in heads if any(key in p for p in parameters)]
        rows = {p["name"]: {heads[key]: p.get(key) for key in known} for p in parameters}
        frame: pd.DataFrame = pandas.DataFrame.from_dict(rows, orient="index", dtype=float)
        return frame

    # Other formats.

    def to_cmdstan_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes the draws in the CSV format of CmdStan's variational method, like ``draws.csv`` of the command.

        ``cmdstanpy.from_csv``, CmdStanR and RStan read the file. The first row is the mean of the approximation, or of
        refined draws, on the unconstrained scale, transformed to the constrained scale. Each further row is a draw.
        """
        mean, above, eta = self._besides or (None, "", 1.0)
        if mean is None:
            raise ValueError("the mean of this fit is unknown, because an earlier version wrote its folder: fit again")
        variables = [(name, shape) for name, shape, *_ in self._variables]
        _jensen.write_draws(path, variables, self._draws, self._log_p, self._log_q, mean, above, eta)

    def to_arviz(
        self,
        *,
        coords: Mapping[str, Sequence[Any]] | None = None,
        dims: Mapping[str, Sequence[str]] | None = None,
        posterior_predictive: Sequence[str] | None = None,
        log_likelihood: Sequence[str] | None = None,
        observed: Mapping[str, Any] | None = None,
    ) -> Any:
        """Converts the fit to ArviZ: ``InferenceData`` for ArviZ 0.x, or a ``DataTree`` for ArviZ 1.

        The group ``posterior`` has equally weighted draws of all variables without another group. For draws of the
        approximation, the group ``approximation`` has their log densities under the model and the approximation, and
        their log weights.

        Args:
            coords: Labels by dimension.
            dims: Names of the dimensions by variable. By default a dimension has the name of the data variable that
                declares its size, such as ``J`` in ``vector[J] theta``.
            posterior_predictive: Names of the posterior predictive variables. The default is all generated quantities
                whose names end in ``_rep`` or ``_pred``.
            log_likelihood: Names of the pointwise log likelihoods. The default is ``log_lik``, if the program generates
                it.
            observed: The observed data by name. The default is the observed data of a PyMC or NumPyro model, or the data
                whose names are those of the predictive variables without ``_rep`` or ``_pred``. All other data are
                constant.
        """
        arviz = extra("arviz", "arviz")
        generated = [name for name, _, part, _ in self._variables if part == "generated quantities"]
        likelihoods = list(log_likelihood) if log_likelihood is not None else [n for n in generated if n == "log_lik"]
        if posterior_predictive is not None:
            predictive = list(posterior_predictive)
        else:
            predictive = [n for n in generated if n.endswith(("_rep", "_pred"))]
        for name in [*likelihoods, *predictive]:
            if name not in self:
                raise KeyError(f"the fit has no variable {name!r}: expected one of {', '.join(self.keys())}")

        def group(names: Sequence[str]) -> dict[str, Array]:
            return {name: self[name][np.newaxis] for name in names}

        used = {*likelihoods, *predictive}
        groups: dict[str, dict[str, Any]] = {"posterior": group([name for name in self if name not in used])}
        if predictive:
            groups["posterior_predictive"] = group(predictive)
        if likelihoods:
            groups["log_likelihood"] = group(likelihoods)
        predicted = [name.rsplit("_", 1)[0] for name in predictive]
        own_coords, own_dims, own_observed = self._labels
        named_dims = {**own_dims, **(dims or {})}
        seen = dict(observed or own_observed or {name: self._data[name] for name in predicted if name in self._data})
        if seen:
            groups["observed_data"] = {name: np.asarray(value) for name, value in seen.items()}
        constant = {name: value for name, value in self._data.items() if name not in seen}
        # A number that gives a dimension its name is the dimension's size.
        sizes = {dim for name, value in constant.items() if np.ndim(value) for dim in named_dims.get(name, ())}
        constant = {name: value for name, value in constant.items() if np.ndim(value) or name not in sizes}
        if constant:
            groups["constant_data"] = constant
        shapes = {name: np.shape(value) for name, value in seen.items()} | {name: shape for name, shape, *_ in self._variables}
        for name, given in (dims or {}).items():
            if name in shapes and len(given) != len(shapes[name]):
                raise ValueError(f"dims of {name!r} are {list(given)}: expected {len(shapes[name])}, for shape {shapes[name]}")
        # ArviZ numbers coordinates from 0 if a dimension has none.
        named: dict[str, Any] = {"coords": {**own_coords, **(coords or {})}, "dims": named_dims}
        old = int(arviz.__version__.split(".")[0]) < 1
        result = arviz.from_dict(**groups, **named) if old else arviz.from_dict(groups, **named)
        if not self._refined:
            weights = {
                "log_p": self._log_p[np.newaxis],
                "log_q": self._log_q[np.newaxis],
                "log_weight": (self._log_p - self._log_q)[np.newaxis],
            }
            if old:
                result.add_groups({"approximation": arviz.dict_to_dataset(weights)}, warn_on_custom_groups=False)
            else:
                result["approximation"] = arviz.from_dict({"posterior": weights})["posterior"]
        return result

    def report(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns the HTML report as one self-contained page, and writes it to ``path`` if given."""
        if self._report is None:
            if self._handle is None:
                raise ValueError("the folder of this fit has no report")
            self._report = self._handle.report()
        if path is not None:
            Path(path).write_text(self._report, encoding="utf-8")
        return self._report

    def __repr__(self) -> str:
        drawn = "refined draws" if self._refined else "draws"
        trust = "trusted" if self.trusted else "NOT to be trusted"
        return (
            f"<jensen.Fit: {trust}; {len(self._draws)} {drawn} of {', '.join(self.keys()[:6])}"
            f"{', …' if len(self) > 6 else ''}; ELBO {self.elbo:.2f} ± {self.elbo_se:.2f} nats, k̂ {self.khat:.2f}>"
        )

    def _repr_html_(self) -> str:
        head = f"{len(self._draws)} draws, ELBO {self.elbo:.2f} ± {self.elbo_se:.2f} nats, k̂ {self.khat:.2f}"
        parameters = self._summary["parameters"]
        # Summaries are in the order of the columns.
        rows = [(p, self._draws[:, column]) for column, p in enumerate(parameters[: _stored.SHOWN])]
        against = [] if self.trusted else self.warnings
        return _stored.page(head, self.trusted, against, rows, len(parameters) - len(rows))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Saves the fit to one file for ``jensen.load``, with draws, summary, report, data, names and coordinates.

        The file does not contain the approximation. To draw from it again later, fit with ``jensen.fit(..., out=...)``
        and use the command ``jensen draws`` on the folder.
        """
        mean, above, eta = self._besides or (None, "", 1.0)
        arrays = {"draws": self._draws, "log_p": self._log_p, "log_q": self._log_q}
        if mean is not None:
            arrays["mean"] = mean
        coords, dims, observed = self._labels
        about = {
            "summary": self._summary,
            "variables": self._variables,
            "refined": self._refined,
            "history": self._history,
            "report": self.report(),
            "besides": [above, eta],
            "coords": {name: list(values) for name, values in coords.items()},
            "dims": {name: list(names) for name, names in dims.items()},
            "observed": list(observed),
        }
        named = {f"data.{name}": np.asarray(value) for name, value in self._data.items()}
        _stored.write(path, about, {**arrays, **named})

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self._handle is not None:
            state["_report"] = self.report()
        state["_handle"] = None
        return state


def fit(
    model: str | os.PathLike[str] | Model | None = None,
    data: Data = None,
    *,
    density: Density | Callable[[Array], tuple[Array, Array]] | None = None,
    hvp: Callable[[Array, Array], Array] | None = None,
    constrain: Callable[[Array], Mapping[str, npt.ArrayLike]] | None = None,
    dim: int | None = None,
    names: Sequence[str] | None = None,
    include: Sequence[str | os.PathLike[str]] = (),
    out: str | os.PathLike[str] | None = None,
    init: Literal["0", "random"] | int | os.PathLike[str] | str | Mapping[str, Any] | npt.ArrayLike | None = None,
    method: Literal["auto", "trust", "advi", "hfsgvi", "bbvi", "smiso"] | Method | None = None,
    family: str | Family | None = None,
    refine: Literal["auto", "none", "always"] | None = None,
    centring: Literal["auto", "off"] | None = None,
    covariance: Literal["family", "linear_response"] | None = None,
    covariance_of: Sequence[str] | str | None = None,
    exchangeable: str | None = None,
    records: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    batch: int | None = None,
    estimator: Literal["naive", "stl", "cv", "inc", "ens", "joint", "joint-mean", "joint-paper", "joint-svrg", "joint-exact"] | None = None,
    ens_weight: float | None = None,
    trace_variance: int | None = None,
    optimizer: Literal["sgd", "adam", "adagrad", "rmsprop"] | None = None,
    step_size: float | None = None,
    momentum: float | None = None,
    grad_samples: int | None = None,
    elbo_samples: int | None = None,
    advi_iters: int | None = None,
    tol: float | None = None,
    mean_error: float | None = None,
    sd_error: float | None = None,
    failure_probability: float | None = None,
    effective_draws: float | None = None,
    max_gradients: int | None = None,
    max_iters: int | None = None,
    max_seconds: float | None = None,
    memory_limit: int | None = None,
    draws: int | None = None,
    save: str | Sequence[str] | None = None,
    importance_resample: bool | None = None,
    seed: int | None = None,
    threads: int | None = None,
    simd: Literal["auto", "avx512", "avx2", "scalar"] | None = None,
    checkpoint_every: float | None = None,
    progress: bool | Progress = False,
) -> Fit:
    """Fits a Stan program to data, or a density written in Python.

    A fit that is not trusted issues a ``TrustWarning``.

    Args:
        model: The program, as a path, source text or a ``jensen.Model``.
        data: Values by name (numbers, lists, arrays), a data frame with named columns, or the path of a JSON file, a
            CSV table or an R dump.
        density: A log density, instead of a program. The function maps points of shape ``(n, dim)`` to log densities in
            nats of shape ``(n,)`` and their gradients of shape ``(n, dim)``. A model from ``from_pymc`` or
            ``from_numpyro`` is also a density.
        hvp: A function that maps points and directions, both of shape ``(n, dim)``, to Hessian-vector products of the
            density. By default Jensen uses differences of gradients, at two gradients per product.
        constrain: A function that maps a point of shape ``(dim,)`` to values by name. The draws then consist of these
            values instead of the density's coordinates.
        dim: The dimension of the density, if ``names`` is not given.
        names: Names of the density's coordinates. The default is ``z1``, ``z2``, ….
        include: Folders to search for included files.
        out: A folder for results and checkpoints, with the files of ``jensen fit --out``.
        records: Parquet files, or a folder of them, whose rows are the records that ``exchangeable`` counts. Jensen
            reads them block by block, and ``data`` has all other data.
        init: The starting point: ``0``, ``"random"``, parameter values by name, an unconstrained point, or a JSON file.
        method: A name, or one of ``jensen.methods`` with settings, such as ``methods.ADVI(grad_samples=10)``.
        family: A name, or one of ``jensen.families``, such as ``families.LowRank(5)``.
        progress: ``True`` for a tqdm progress line, or a function of iteration, stage, ELBO in nats and seconds.

    The other settings have the names and meanings of the flags of ``jensen fit``, which ``jensen fit --help`` describes:

    - *Posterior*: ``refine``, ``centring``, ``covariance``, ``covariance_of``.
    - *Records*: ``exchangeable``, ``records``, ``batch``, ``estimator``, ``ens_weight``, ``trace_variance``.
    - *Methods*: ``optimizer``, ``step_size``, ``momentum``, ``grad_samples``, ``elbo_samples``, ``advi_iters``, ``tol``.
    - *Accuracy*: ``mean_error``, ``sd_error``, ``failure_probability``, ``effective_draws``.
    - *Budget*: ``max_gradients``, ``max_iters``, ``max_seconds``, ``memory_limit``.
    - *Run*: ``draws``, ``save``, ``importance_resample``, ``seed``, ``threads``, ``simd``, ``checkpoint_every``.

    The same seed and settings give the draws of the command, bit for bit, on any number of threads.

    Raises:
        StanError: The program is wrong, or the data do not fit its declarations.
        FitError: No starting point has a finite density.
        ValueError, TypeError: A setting or a value is wrong.
        KeyboardInterrupt: The user interrupted the run. With ``out``, ``jensen.resume`` can continue it.
    """
    if isinstance(covariance_of, Sequence) and not isinstance(covariance_of, str):
        covariance_of = ",".join(covariance_of)
    if isinstance(save, Sequence) and not isinstance(save, str):
        save = ",".join(save)
    request: dict[str, Any] = {
        "method": method,
        "family": None if family is None else str(family),
        "refine": refine,
        "centring": centring,
        "covariance": covariance,
        "covariance_of": covariance_of,
        "exchangeable": exchangeable,
        "records": None if records is None else paths_of(records),
        "batch": batch,
        "estimator": estimator,
        "ens_weight": ens_weight,
        "trace_variance": trace_variance,
        "optimizer": optimizer,
        "step_size": step_size,
        "momentum": momentum,
        "grad_samples": grad_samples,
        "elbo_samples": elbo_samples,
        "advi_iters": advi_iters,
        "tol": tol,
        "mean_error": mean_error,
        "sd_error": sd_error,
        "failure_probability": failure_probability,
        "effective_draws": effective_draws,
        "max_gradients": max_gradients,
        "max_iters": max_iters,
        "max_seconds": max_seconds,
        "memory_limit": memory_limit,
        "draws": draws,
        "save": save,
        "importance_resample": importance_resample,
        "seed": seed,
        "simd": simd,
        "checkpoint_every": checkpoint_every,
    }
    request = expanded(request)
    if threads is not None:
        if not isinstance(threads, (int, np.integer)):
            raise TypeError(f"threads is {threads!r}: expected a whole number")
        if threads < 1:
            raise ValueError(f"threads is {threads}: expected at least 1")
    point, values, named = _start(init)
    if named is not None:
        request["init"] = named
    if density is not None:
        if model is not None or data is not None:
            raise TypeError("expected either a program with data, or a density, but not both")
        if out is not None or values is not None:
            raise TypeError("a fit of a density cannot have `out` or start at parameter values: give `init` as an unconstrained point")
        if not isinstance(density, Density):
            labels = _names(dim, names)
            start = np.zeros(len(labels)) if point is None else np.asarray(point)
            density = Density(density, labels, start, constrain, hvp)
        elif point is None and named is None:
            point = list(density.start)
        return _fit_density(density, encode(request), point, threads, progress)
    if hvp is not None or constrain is not None or dim is not None or names is not None:
        raise TypeError("`hvp`, `constrain`, `dim` and `names` need a density: give `density=`")
    if model is None:
        raise TypeError("nothing to fit: give a program, or `density=` with its `dim=`")
    if isinstance(model, Model):
        name, text, folders = model._name, model._text, model._include
    else:
        name, text = read_program(model)
        folders = []
    arrays, path = split_data(data)
    folders = [*folders, *(os.fspath(folder) for folder in include)]
    program = _jensen.Program.compile(name, text, folders, arrays, path, encode(request), threads)
    for remark in program.remarks():
        warn(remark)
    folder = None if out is None else os.fspath(out)
    with _Progress(progress) as callback:
        result = program.fit(folder, False, False, point, values, callback)
    return _judged(result, program.data())


def resume(
    out: str | os.PathLike[str],
    *,
    max_iters: int | None = None,
    max_seconds: float | None = None,
    threads: int | None = None,
    force: bool = False,
    progress: bool | Progress = False,
) -> Fit:
    """Resumes the fit in a folder from its last checkpoint. The result equals an uninterrupted fit, bit for bit.

    Args:
        out: The folder of the fit.
        max_iters, max_seconds: New limits of the run. The default is the stored limits.
        threads: Number of threads. The default is all threads of the machine.
        force: Whether to resume although program, data or settings differ from the stored run.
        progress: As for ``jensen.fit``.
    """
    given = encode({"max_iters": max_iters, "max_seconds": max_seconds})
    program = _jensen.Program.stored(os.fspath(out), given, threads)
    with _Progress(progress) as callback:
        result = program.fit(os.fspath(out), True, force, None, None, callback)
    return _judged(result, program.data())


def load(out: str | os.PathLike[str]) -> Fit:
    """Loads a finished fit from a folder of ``jensen fit`` or ``jensen.fit``, or from a file of ``Fit.save``."""
    if Path(out).is_file():
        return _saved(Path(out))
    folder = Path(out)
    if not folder.exists():
        raise FileNotFoundError(f"cannot load `{out}`: there is no such file or folder")
    try:
        summary = json.loads((folder / "fit.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"`{folder}` has no finished fit: resume it with jensen.resume") from None
    except ValueError as error:
        raise _jensen.Error(f"`{folder / 'fit.json'}` is damaged ({error}): restore the file, or fit again") from None
    # The stored program has the kinds of the variables, and the folder also has its data.
    program = _jensen.Program.stored(os.fspath(out), "{}", None)
    drawn, besides = _jensen.read_draws(folder / "draws.csv")
    page = folder / "report.html"
    fitted = Fit(
        summary,
        [(name, tuple(shape), part, integer) for name, shape, part, integer in program.variables()],
        drawn,
        refined=(folder / "refined.safetensors").exists(),
        besides=besides,
        history=[],
        report=page.read_text(encoding="utf-8") if page.exists() else None,
        data=program.data(),
    )
    fitted._labels = (*program.labels(), {})
    return fitted


def _saved(path: Path) -> Fit:
    about, arrays = _stored.read(path)
    try:
        return _of_saved(about, arrays)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise _jensen.Error(f"`{path}` is damaged ({error!r}): save the fit again, or restore the file") from None


def _of_saved(about: dict[str, Any], arrays: dict[str, Array]) -> Fit:
    data = {name.removeprefix("data."): value for name, value in arrays.items() if name.startswith("data.")}
    fitted = Fit(
        about["summary"],
        [(name, tuple(shape), part, integer) for name, shape, part, integer in about["variables"]],
        (arrays["draws"], arrays["log_p"], arrays["log_q"]),
        refined=about["refined"],
        history=[(iteration, stage, seconds, elbo) for iteration, stage, seconds, elbo in about["history"]],
        besides=(arrays.get("mean"), *about["besides"]),
        report=about["report"],
        data=data,
    )
    fitted._labels = (about["coords"], about["dims"], {name: data[name] for name in about["observed"]})
    return fitted


def _fit_density(
    density: Density, request: str, point: list[float] | None, threads: int | None, progress: bool | Progress
) -> Fit:
    variables: list[tuple[str, tuple[int, ...], str]] = [(name, (), "parameters") for name in density.names]
    flat = None
    if (constrain := density.constrain) is not None:
        given = constrain(density.start)
        if not isinstance(given, Mapping):
            raise TypeError(f"`constrain` returned a value of type {type(given).__name__}: expected a mapping of names to values")
        first = {name: np.shape(value) for name, value in given.items()}
        variables = [
            (name, shape, "transformed parameters" if name in density.deterministic else "parameters")
            for name, shape in first.items()
        ]

        def flat(at: Array) -> Array:
            values = constrain(at)
            shapes = {name: np.shape(value) for name, value in values.items()}
            if shapes != first:
                raise ValueError(f"`constrain` returned shapes {shapes} here, but {first} at the starting point")
            return np.concatenate([np.ravel(values[name], order="F") for name in first]).astype(np.float64)

    with _Progress(progress) as callback:
        result = _jensen.fit_density(
            density.function, density.hvp, density.names, variables, flat, request, point, threads, callback
        )
    fitted = _judged(result, {**density.constant, **density.observed})
    fitted._labels = (density.coords, density.dims, density.observed)
    return fitted


def _judged(result: _jensen.Fitted, data: dict[str, Any]) -> Fit:
    fitted = Fit(
        json.loads(result.summary()),
        [(name, tuple(shape), part, integer) for name, shape, part, integer in result.variables()],
        result.draws(),
        refined=result.refined(),
        besides=result.besides(),
        history=result.history(),
        data=data,
        handle=result,
    )
    fitted._labels = (*result.labels(), {})
    if not fitted.trusted:
        warn(fitted.verdict)
    return fitted


def _start(init: Any) -> tuple[list[float] | None, dict[str, Any] | None, str | None]:
    """Returns an unconstrained point, parameter values, or a name, according to the type of ``init``."""
    if init is None:
        return None, None, None
    if isinstance(init, Mapping):
        return None, {str(name): as_array(str(name), value) for name, value in init.items()}, None
    if isinstance(init, (str, os.PathLike)):
        return None, None, os.fspath(init)
    if isinstance(init, (int, float)) and init == 0:
        return None, None, "0"
    point = np.asarray(init, dtype=np.float64)
    if point.ndim != 1:
        raise ValueError(f"a starting point of shape {point.shape}: expected an unconstrained point of shape (dim,)")
    return [float(x) for x in point], None, None


def _names(dim: int | None, names: Sequence[str] | None) -> list[str]:
    if dim is not None and not isinstance(dim, (int, np.integer)):
        raise TypeError(f"dim is {dim!r}: expected a whole number")
    if names is None:
        if dim is None or dim < 1:
            raise ValueError("the dimension of the density is missing: give `dim=`, at least 1")
        return [f"z{i + 1}" for i in range(dim)]
    if dim is not None and dim != len(names):
        raise ValueError(f"{len(names)} names for {dim} dimensions")
    return list(names)


class _Progress:
    """Provides the callback of a run: none, the user's function, or a tqdm progress line."""

    def __init__(self, wanted: bool | Progress) -> None:
        self._wanted = wanted
        self._bar: Any = None

    def __enter__(self) -> Progress | None:
        if callable(self._wanted):
            return self._wanted
        if not self._wanted:
            return None
        tqdm = extra("tqdm.auto", "progress")
        self._bar = tqdm.tqdm(desc="jensen", unit="it")
        return self._show

    def _show(self, iteration: int, stage: str, elbo: float, seconds: float) -> None:
        self._bar.n = iteration
        self._bar.set_postfix_str(f"{stage}  ELBO {elbo:.2f}")

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
