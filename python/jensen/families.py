"""Families of approximations, as values for ``jensen.fit(family=...)``; the page on choosing compares them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MeanField:
    """Independent normals."""

    def __str__(self) -> str:
        return "meanfield"


@dataclass(frozen=True)
class FullRank:
    """One normal with any covariance."""

    def __str__(self) -> str:
        return "fullrank"


@dataclass(frozen=True)
class Sparse:
    """A normal whose precision is zero for pairs without a mixed second derivative of the log density."""

    def __str__(self) -> str:
        return "sparse"


@dataclass(frozen=True)
class Conditional:
    """A conditionally structured Gaussian (Tan, Bhaskaran and Nott 2020)."""

    def __str__(self) -> str:
        return "conditional"


@dataclass(frozen=True)
class LowRank:
    """A normal whose covariance is diagonal plus a matrix of this rank."""

    rank: int

    def __str__(self) -> str:
        return f"lowrank={self.rank}"


@dataclass(frozen=True)
class Mixture:
    """A mixture of normals with any covariances."""

    components: int = 8

    def __str__(self) -> str:
        return f"mixture={self.components}"


@dataclass(frozen=True)
class Flow:
    """Affine coupling layers on the best normal."""

    layers: int = 6

    def __str__(self) -> str:
        return f"flow={self.layers}"


Family = MeanField | FullRank | Sparse | Conditional | LowRank | Mixture | Flow
