"""Methods with their settings for ``jensen.fit(method=...)``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

Estimator = Literal["naive", "stl", "cv", "inc", "ens", "joint", "joint-mean", "joint-paper", "joint-svrg", "joint-exact"]
Optimizer = Literal["sgd", "adam", "adagrad", "rmsprop"]


@dataclass(frozen=True)
class Method:
    """A method of inference. Its fields are the settings of ``jensen.fit`` for this method; None gives the default."""

    name: ClassVar[str] = "auto"


@dataclass(frozen=True)
class TrustVI(Method):
    """TrustVI, a stochastic trust-region method (Regier, Jordan and McAuliffe 2017)."""

    name: ClassVar[str] = "trust"


@dataclass(frozen=True)
class ADVI(Method):
    """Automatic differentiation variational inference as in Stan (Kucukelbir et al. 2017)."""

    name: ClassVar[str] = "advi"

    step_size: float | None = None
    grad_samples: int | None = None
    elbo_samples: int | None = None
    advi_iters: int | None = None


@dataclass(frozen=True)
class HFSGVI(Method):
    """Hessian-free Newton steps without a trust region, as a baseline for TrustVI."""

    name: ClassVar[str] = "hfsgvi"


@dataclass(frozen=True)
class BBVI(Method):
    """Black-box variational inference: stochastic gradients with a choice of estimator and optimiser, and iterate averaging."""

    name: ClassVar[str] = "bbvi"

    estimator: Estimator | None = None
    ens_weight: float | None = None
    optimizer: Optimizer | None = None
    step_size: float | None = None
    grad_samples: int | None = None
    batch: int | None = None


@dataclass(frozen=True)
class SMISO(Method):
    """Incremental minimisation over minibatches of exchangeable records, with optional heavy-ball momentum."""

    name: ClassVar[str] = "smiso"

    step_size: float | None = None
    momentum: float | None = None
    grad_samples: int | None = None
    batch: int | None = None


def expanded(request: Mapping[str, Any]) -> dict[str, Any]:
    """Adds the settings of the method to a request. A setting that the request already has raises ``TypeError``."""
    method = request["method"]
    if not isinstance(method, Method):
        return dict(request)
    own = {name: value for name, value in asdict(method).items() if value is not None}
    for name in own:
        if request.get(name) is not None:
            raise TypeError(f"`{name}` is given twice: in `method=` and as an argument")
    return {**request, **own, "method": method.name}
