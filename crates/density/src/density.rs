//! Batched log densities and their derivatives.

use std::sync::Arc;

use crate::{ErasedRecords, Lanes, LanesMut, Pattern};

/// A log density on ℝᵈ, evaluated for many draws at once. The model is immutable. The caller owns the scratch memory,
/// which [`LogDensity::workspace`] creates.
///
/// * Values are in nats. A method may drop constants, unless it reports a bound on the evidence.
/// * `-∞` is a legal value. A `NaN` value rejects that lane and does not affect the others. The gradient of a lane
///   whose value is not finite is unspecified.
/// * The density manages its own threads: an estimator makes one call for its whole batch. The result for a lane
///   depends neither on the number of other lanes nor on the number of threads.
pub trait LogDensity: Sync {
    /// Scratch memory of one caller.
    type Workspace: Send;

    /// Returns the number d of unconstrained coordinates.
    fn dim(&self) -> usize;

    /// Returns scratch memory for batches of up to `lanes` draws.
    fn workspace(&self, lanes: usize) -> Self::Workspace;

    /// Returns scratch memory for the search for a starting point. Results may be accurate to only about four digits if
    /// that is cheaper.
    fn rough_workspace(&self, lanes: usize) -> Self::Workspace {
        self.workspace(lanes)
    }

    /// Computes `out[l] = log p(z[:, l])` for `z` of shape `dim × lanes`.
    fn value(&self, ws: &mut Self::Workspace, z: Lanes<'_>, out: &mut [f64]);

    /// Writes the [`value`](Self::value) to `out`, and the gradient with respect to `z` to `grad` (`dim × lanes`).
    fn value_grad(
        &self,
        ws: &mut Self::Workspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    );

    /// Returns the exchangeable records over which the density sums, for minibatch methods.
    fn records(&self) -> Option<ErasedRecords<'_>> {
        None
    }

    /// Returns the cost of a value and gradient per draw, in elementary operations, each of which takes about a
    /// nanosecond. `None` means that the cost is unknown or depends on the point, as with an adaptive solver. Inference
    /// then does not evaluate the density far from the known mass of the posterior, and it refines early instead of
    /// checking the fit with many draws.
    fn work(&self) -> Option<u64> {
        None
    }

    /// Returns the pairs of coordinates whose mixed second derivative may be nonzero, or `None` if the density does not
    /// know them.
    fn pattern(&self) -> Option<Arc<Pattern>> {
        None
    }
}

impl<D: LogDensity> LogDensity for &D {
    type Workspace = D::Workspace;

    fn dim(&self) -> usize {
        (**self).dim()
    }
    fn workspace(&self, lanes: usize) -> Self::Workspace {
        (**self).workspace(lanes)
    }
    fn rough_workspace(&self, lanes: usize) -> Self::Workspace {
        (**self).rough_workspace(lanes)
    }
    fn value(&self, ws: &mut Self::Workspace, z: Lanes<'_>, out: &mut [f64]) {
        (**self).value(ws, z, out);
    }
    fn value_grad(
        &self,
        ws: &mut Self::Workspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        (**self).value_grad(ws, z, out, grad);
    }
    fn records(&self) -> Option<ErasedRecords<'_>> {
        (**self).records()
    }
    fn work(&self) -> Option<u64> {
        (**self).work()
    }

    fn pattern(&self) -> Option<Arc<Pattern>> {
        (**self).pattern()
    }
}

/// A log density with Hessian-vector products (forward over reverse).
///
/// [`linearize`](Self::linearize) fixes the draws. [`apply`](Self::apply) may then be called many times, for example by
/// the method of conjugate gradients.
pub trait TwiceDifferentiable: LogDensity {
    /// Fixes the draws at which [`apply`](Self::apply) evaluates the Hessian.
    fn linearize(&self, ws: &mut Self::Workspace, z: Lanes<'_>);

    /// Computes `out[:, l] = ∇² log p(z[:, l]) · v[:, l]` at the draws of the last `linearize` on `ws`.
    ///
    /// # Panics
    /// Panics if `linearize` was not called or the number of lanes differs. Both are bugs in the caller.
    fn apply(&self, ws: &mut Self::Workspace, v: Lanes<'_>, out: LanesMut<'_>);

    /// Calls [`linearize`](Self::linearize), then [`apply`](Self::apply) once.
    fn hvp(&self, ws: &mut Self::Workspace, z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>) {
        self.linearize(ws, z);
        self.apply(ws, v, out);
    }
}

impl<D: TwiceDifferentiable> TwiceDifferentiable for &D {
    fn linearize(&self, ws: &mut Self::Workspace, z: Lanes<'_>) {
        (**self).linearize(ws, z);
    }
    fn apply(&self, ws: &mut Self::Workspace, v: Lanes<'_>, out: LanesMut<'_>) {
        (**self).apply(ws, v, out);
    }
}
