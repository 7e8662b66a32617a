"""Models of PyMC and NumPyro as densities."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ._extra import extra

if TYPE_CHECKING:
    from ._fit import Fit

Array = npt.NDArray[np.float64]


@dataclass
class Density:
    """The log density of a PyMC or NumPyro model, with the names and shapes of its variables.

    :func:`jensen.from_pymc` and :func:`jensen.from_numpyro` create it. A call with points of shape ``(n, dim)`` returns
    log densities in nats and their gradients, as ``jensen.fit(density=...)`` requires.
    """

    function: Callable[[Array], tuple[Array, Array]]
    #: Names of the unconstrained coordinates.
    names: list[str]
    #: The unconstrained starting point.
    start: Array
    #: Returns values by name at an unconstrained point. If None, draws consist of the coordinates.
    constrain: Callable[[Array], Mapping[str, npt.ArrayLike]] | None = None
    #: Returns products of the Hessian at points with directions.
    hvp: Callable[[Array, Array], Array] | None = None
    #: Names of the values of ``constrain`` that are deterministic.
    deterministic: frozenset[str] = frozenset()
    #: Coordinates and dimensions for ArviZ.
    coords: dict[str, Sequence[Any]] = field(default_factory=dict)
    dims: dict[str, list[str]] = field(default_factory=dict)
    observed: dict[str, Any] = field(default_factory=dict)
    constant: dict[str, Any] = field(default_factory=dict)

    @property
    def dim(self) -> int:
        """Number of unconstrained coordinates."""
        return len(self.names)

    def __call__(self, points: Array) -> tuple[Array, Array]:
        return self.function(points)

    def fit(self, **settings: Any) -> Fit:
        """Fits the model: ``jensen.fit(density=self, ...)``."""
        from ._fit import fit

        return fit(density=self, **settings)


def from_pymc(model: Any, *, backend: Literal["jax", "numba", "python"] | None = None) -> Density:
    """Converts a PyMC model to a density, with PyMC's transforms, names, coordinates and dimensions.

    Args:
        model: A ``pymc.Model`` whose free variables are continuous.
        backend: The target to which PyTensor compiles the log density: ``"jax"``, ``"numba"`` or ``"python"``. JAX is the
            default if it is installed, and compiles in about a second. Otherwise the default is Numba. ``"python"`` is
            slow, but needs no compiler.

    ``pymc.compute_log_likelihood`` and ``pymc.sample_posterior_predictive`` accept the result of ``fit.to_arviz()``.

    Raises:
        ValueError: The model has discrete free variables.
    """
    extra("pymc", "pymc")
    discrete = [value.name for value in model.discrete_value_vars]
    if discrete:
        raise ValueError(f"discrete variables have no gradients, sum them out: {', '.join(discrete)}")
    initial = model.initial_point()
    point = {value.name: np.asarray(initial[value.name], dtype=np.float64) for value in model.value_vars}
    chosen = backend or ("jax" if _installed("jax") else "numba")
    outputs = list(model.unobserved_RVs)
    values = model.replace_rvs_by_values(outputs)
    if chosen == "jax":
        jaxify = extra("pymc.sampling.jax", "pymc")
        shapes = [at.shape for at in point.values()]
        # Not `get_jaxified_logp`: the sign of its value has changed between versions.
        log_density = jaxify.get_jaxified_graph(inputs=model.value_vars, outputs=[model.logp(jacobian=True)])
        transform = jaxify.get_jaxified_graph(inputs=model.value_vars, outputs=values)
        function, hvp = _of_jax(lambda z: log_density(*_split(z, shapes))[0])
        compute = _jitted(lambda z: transform(*_split(z, shapes)))
    elif chosen in ("numba", "python"):
        hvp = None
        function, compute = _of_pytensor(model, point, values, "NUMBA" if chosen == "numba" else "FAST_COMPILE")
    else:
        raise ValueError(f"backend {chosen!r}: expected 'jax', 'numba' or 'python'")
    names = [variable.name for variable in outputs]
    seen = {rv.name: model.rvs_to_values[rv] for rv in model.observed_RVs}
    data = [variable for variable in model.data_vars if variable not in seen.values()]
    return Density(
        function=function,
        names=list(_coordinates(point)),
        start=np.concatenate([np.ravel(at) for at in point.values()]),
        constrain=lambda z: {name: np.asarray(value) for name, value in zip(names, compute(z))},
        hvp=hvp,
        deterministic=frozenset(variable.name for variable in model.deterministics),
        coords={name: list(given) for name, given in model.coords.items() if given is not None},
        dims={name: list(given) for name, given in model.named_vars_to_dims.items()},
        observed={name: _numbers(value) for name, value in seen.items()},
        constant={variable.name: _numbers(variable) for variable in data},
    )


def from_numpyro(model: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Density:
    """Converts a NumPyro model to a density in double precision.

    The density uses NumPyro's names, transforms and deterministic sites. Plates become dimensions for ArviZ.

    Args:
        model: A NumPyro model, whose latent sites are continuous.
        args: The positional arguments of the model.
        kwargs: The keyword arguments of the model.

    Raises:
        ValueError: The model has discrete latent sites.
    """
    jax = extra("jax", "numpyro")
    util = extra("numpyro.infer.util", "numpyro")
    handlers = extra("numpyro.handlers", "numpyro")
    ravel = extra("jax.flatten_util", "numpyro").ravel_pytree
    given = dict(kwargs or {})
    with _double():
        key = jax.random.PRNGKey(0)
        traced = handlers.trace(handlers.seed(model, key)).get_trace(*args, **given)
        sites = {name: site for name, site in traced.items() if site["type"] == "sample"}
        latent = {name: site for name, site in sites.items() if not site["is_observed"]}
        discrete = [name for name, site in latent.items() if site["fn"].support.is_discrete]
        if discrete:
            raise ValueError(f"discrete sites have no gradients, sum them out: {', '.join(discrete)}")
        initial = util.initialize_model(key, model, model_args=tuple(args), model_kwargs=given)
        start, unravel = ravel(initial.param_info.z)
        shapes = {name: np.zeros(np.shape(at)) for name, at in initial.param_info.z.items()}
    function, hvp = _of_jax(lambda z: -initial.potential_fn(unravel(z)))
    compute = _jitted(lambda z: initial.postprocess_fn(unravel(z)))
    return Density(
        function=function,
        # The order of ravel_pytree is that of the sorted names.
        names=list(_coordinates({name: shapes[name] for name in sorted(shapes)})),
        start=np.asarray(start, dtype=np.float64),
        constrain=lambda z: {name: np.asarray(value) for name, value in compute(z).items()},
        hvp=hvp,
        deterministic=frozenset(name for name, site in traced.items() if site["type"] == "deterministic"),
        dims={name: _plates(site) for name, site in sites.items() if site["cond_indep_stack"]},
        observed={name: np.asarray(site["value"]) for name, site in sites.items() if site["is_observed"]},
    )


def _numbers(variable: Any) -> Array:
    """The value of a constant or shared variable of PyTensor."""
    value = variable.get_value() if hasattr(variable, "get_value") else variable.data
    return np.asarray(value)


def _coordinates(point: Mapping[str, Array]) -> Iterator[str]:
    """A name for each coordinate of variables that are laid out in C order."""
    for name, at in point.items():
        for index in np.ndindex(at.shape):
            yield name if not index else f"{name}[{','.join(str(i) for i in index)}]"


def _plates(site: Any) -> list[str]:
    """Names of the plates of a site, in the order of its axes."""
    return [frame.name for frame in sorted(site["cond_indep_stack"], key=lambda frame: frame.dim)]


def _split(z: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    parts, start = [], 0
    for shape in shapes:
        size = int(np.prod(shape, dtype=int))
        parts.append(z[start : start + size].reshape(shape))
        start += size
    return parts


def _of_pytensor(
    model: Any, point: dict[str, Array], values: Sequence[Any], mode: str
) -> tuple[Callable[[Array], tuple[Array, Array]], Callable[[Array], Sequence[Array]]]:
    """Compiles the log density with its gradient for batches of points, and the values at one point."""
    pytensor = extra("pytensor", "pymc")
    join = extra("pymc.pytensorf", "pymc").join_nonshared_inputs
    vectorize = extra("pytensor.graph.replace", "pymc").vectorize_graph
    (log_density,), z = join(point=point, outputs=[model.logp(jacobian=True)], inputs=model.value_vars)
    batch = pytensor.tensor.matrix("batch", dtype="float64")
    both = vectorize([log_density, pytensor.tensor.grad(log_density, z)], {z: batch})
    outputs, at = join(point=point, outputs=list(values), inputs=model.value_vars)
    with warnings.catch_warnings():
        # Numba warns about graphs that it compiles in object mode.
        warnings.simplefilter("ignore")
        function = pytensor.function([batch], both, mode=mode)
        compute = pytensor.function([at], outputs, mode=mode)

    # A PyTensor function stores its inputs and outputs, so concurrent fits must not call it at the same time.
    lock = threading.Lock()

    def evaluate(points: Array) -> tuple[Array, Array]:
        with lock:
            found, slopes = function(points)
        return np.asarray(found, dtype=np.float64), np.asarray(slopes, dtype=np.float64)

    def constrained(z: Array) -> Sequence[Array]:
        with lock:
            return compute(z)  # type: ignore[no-any-return]

    return evaluate, constrained


def _of_jax(
    log_density: Callable[[Any], Any],
) -> tuple[Callable[[Array], tuple[Array, Array]], Callable[[Array, Array], Array]]:
    """Compiles values with gradients, and Hessian-vector products, of a JAX function of one point for batches of points."""
    jax = extra("jax", "numpyro")
    slope = jax.grad(log_density)
    both = jax.jit(jax.vmap(jax.value_and_grad(log_density)))
    products = jax.jit(jax.vmap(lambda z, v: jax.jvp(slope, (z,), (v,))[1]))

    def padded(points: Array) -> Array:
        # JAX compiles again for every new number of rows. Powers of two limit the number of compilations.
        rows = 1 << (len(points) - 1).bit_length()
        return np.concatenate([points, np.repeat(points[:1], rows - len(points), axis=0)])

    def evaluate(points: Array) -> tuple[Array, Array]:
        with _double():
            values, gradients = both(padded(points))
            return np.asarray(values)[: len(points)], np.asarray(gradients)[: len(points)]

    def hvp(points: Array, directions: Array) -> Array:
        with _double():
            return np.asarray(products(padded(points), padded(directions)))[: len(points)]

    return evaluate, hvp


def _jitted(function: Callable[[Any], Any]) -> Callable[[Array], Any]:
    """Compiles a JAX function of one point in double precision."""
    compiled = extra("jax", "numpyro").jit(function)

    def compute(z: Array) -> Any:
        with _double():
            return compiled(z)

    return compute


def _double() -> Any:
    """A context in which JAX uses double precision."""
    jax = extra("jax", "numpyro")
    # JAX renamed this function.
    return jax.enable_x64(True) if hasattr(jax, "enable_x64") else extra("jax.experimental", "numpyro").enable_x64()


def _installed(module: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(module) is not None
