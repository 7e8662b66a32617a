"""Kernels as Python objects, as an alternative to specification strings."""

from __future__ import annotations

from collections.abc import Sequence


class Kernel:
    """A prior for ``kernel=`` of Gaussian process estimators.

    ``str(kernel)`` is its specification for ``jensen latent fit --prior``. Sums and products of kernels are kernels.

    Parameters
    ----------
    specification : str
        A specification such as ``"gp(rbf, lengthscale~2)"``.
    """

    def __init__(self, specification: str) -> None:
        self.specification = specification

    def __add__(self, other: Kernel) -> Kernel:
        return Kernel(f"{self} + {other}")

    def __mul__(self, other: Kernel) -> Kernel:
        left, right = str(self).split(" + "), str(other).split(" + ")
        return Kernel(" + ".join(f"{a} * {b}" for a in left for b in right))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernel) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(self.specification)

    def __str__(self) -> str:
        return self.specification

    def __repr__(self) -> str:
        return f"Kernel({self.specification!r})"


def _process(
    kernel: str,
    lengthscale: float | Sequence[float] | None,
    variance: float | None,
    ard: bool,
    on: Sequence[str] | None,
    fixed: bool,
) -> Kernel:
    tie = "=" if fixed else "~"
    words = [kernel]
    if ard:
        words.append("ard")
    if on is not None:
        words.append("on=({})".format(", ".join(f'"{name}"' for name in on)))
    if lengthscale is not None:
        if isinstance(lengthscale, Sequence):
            values = "({})".format(", ".join(repr(float(x)) for x in lengthscale))
        else:
            values = repr(float(lengthscale))
        words.append(f"lengthscale{tie}{values}")
    if variance is not None:
        words.append(f"variance{tie}{float(variance)!r}")
    return Kernel(f"gp({', '.join(words)})")


def RBF(
    lengthscale: float | Sequence[float] | None = None,
    *,
    variance: float | None = None,
    ard: bool = False,
    on: Sequence[str] | None = None,
    fixed: bool = False,
) -> Kernel:
    """The squared exponential kernel, variance · exp(−½ (distance / lengthscale)²).

    Parameters
    ----------
    lengthscale : float or sequence of float, optional
        Starting value of the lengthscale or, with ``ard``, one value for each column.
    variance : float, optional
        Starting value of the variance.
    ard : bool
        Whether each column has its own lengthscale.
    on : sequence of str, optional
        Columns that the kernel uses. The default is all columns. Columns without names are ``x1``, ``x2``, ….
    fixed : bool
        Whether to keep the given values instead of learning them.
    """
    return _process("rbf", lengthscale, variance, ard, on, fixed)


def Matern(
    lengthscale: float | Sequence[float] | None = None,
    *,
    nu: float = 1.5,
    variance: float | None = None,
    ard: bool = False,
    on: Sequence[str] | None = None,
    fixed: bool = False,
) -> Kernel:
    """A Matérn kernel with smoothness ``nu`` of 0.5, 1.5 or 2.5.

    The other parameters are those of ``RBF``.
    """
    names = {0.5: "matern12", 1.5: "matern32", 2.5: "matern52"}
    if nu not in names:
        raise ValueError(f"nu={nu}: expected 0.5, 1.5 or 2.5")
    return _process(names[nu], lengthscale, variance, ard, on, fixed)


def Linear(*, variance: float | None = None, on: Sequence[str] | None = None, fixed: bool = False) -> Kernel:
    """The linear kernel: the variance times the inner product of the inputs.

    The parameters are those of ``RBF``.
    """
    return _process("linear", None, variance, False, on, fixed)


def Constant(*, variance: float | None = None, fixed: bool = False) -> Kernel:
    """The constant kernel, which models an unknown overall level.

    The parameters are those of ``RBF``.
    """
    return _process("constant", None, variance, False, None, fixed)
