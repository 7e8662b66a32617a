"""Families of approximations for ``jensen.fit(family=...)``. The book's page on choosing compares them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MeanField:
    """Independent normal distributions."""

    def __str__(self) -> str:
        return "meanfield"


@dataclass(frozen=True)
class FullRank:
    """A normal distribution with a full covariance matrix."""

    def __str__(self) -> str:
        return "fullrank"


@dataclass(frozen=True)
class Sparse:
    """A normal distribution with a sparse precision matrix.

    An element is zero if the log density has no mixed second derivative for the pair of coordinates.
    """

    def __str__(self) -> str:
        return "sparse"


@dataclass(frozen=True)
class Conditional:
    """A conditionally structured Gaussian (Tan, Bhaskaran and Nott 2020).

    Mean, scales and regressions of the local parameters depend on the global parameters.
    """

    def __str__(self) -> str:
        return "conditional"


@dataclass(frozen=True)
class LowRank:
    """A normal distribution whose covariance matrix is diagonal plus a matrix of low rank."""

    rank: int

    def __str__(self) -> str:
        return f"lowrank={self.rank}"


@dataclass(frozen=True)
class Mixture:
    """A mixture of normal distributions with full covariance matrices."""

    components: int = 8

    def __str__(self) -> str:
        return f"mixture={self.components}"


@dataclass(frozen=True)
class Flow:
    """A normalizing flow: affine coupling layers on top of the best normal distribution."""

    layers: int = 6

    def __str__(self) -> str:
        return f"flow={self.layers}"


Family = MeanField | FullRank | Sparse | Conditional | LowRank | Mixture | Flow
