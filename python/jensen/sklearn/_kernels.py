"""Kernels as objects, an alternative to the command's specifications."""

from __future__ import annotations

from collections.abc import Sequence


class Kernel:
    """A prior of a Gaussian process; ``str`` gives its specification for ``jensen latent fit --prior``.

    Sums and products of kernels are kernels.
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
    """variance · exp(−½ (distance / lengthscale)²).

    Numbers are starting values, or fixed values with ``fixed``. ``ard`` gives each column its own lengthscale. ``on``
    names columns, which are called ``x1``, ``x2``, … if the data have no names. The other kernels have the same
    arguments.
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
    """A Matérn kernel with nu of 0.5, 1.5 or 2.5."""
    names = {0.5: "matern12", 1.5: "matern32", 2.5: "matern52"}
    if nu not in names:
        raise ValueError(f"nu={nu}: expected 0.5, 1.5 or 2.5")
    return _process(names[nu], lengthscale, variance, ard, on, fixed)


def Linear(*, variance: float | None = None, on: Sequence[str] | None = None, fixed: bool = False) -> Kernel:
    """variance times the product of the points."""
    return _process("linear", None, variance, False, on, fixed)


def Constant(*, variance: float | None = None, fixed: bool = False) -> Kernel:
    """A constant covariance, which represents an unknown level."""
    return _process("constant", None, variance, False, None, fixed)
