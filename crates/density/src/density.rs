//! Log densities that are evaluated for a batch of draws at once, and their derivatives.

use std::sync::Arc;

use crate::{ErasedRecords, Lanes, LanesMut, Pattern};

/// A log density on ℝᵈ, evaluated for many draws at once. Evaluation does not change the model. All mutable state is in
/// a workspace, which [`LogDensity::workspace`] creates and the caller owns.
///
/// * Values are in nats. A density may drop constant terms, except for methods that report a bound on the evidence.
/// * `-∞` is a legal value. If the value of a lane is `NaN`, the lane is rejected, and the other lanes are not
///   affected. If the value of a lane is not finite, its gradient is unspecified.
/// * The density manages its own threads, so an estimator makes a single call for its whole batch. The result for a
///   lane depends neither on the number of other lanes nor on the number of threads.
pub trait LogDensity: Sync {
    /// The scratch memory of one caller.
    type Workspace: Send;

    /// Returns the number d of unconstrained coordinates.
    fn dim(&self) -> usize;

    /// Returns scratch memory for batches of up to `lanes` draws.
    fn workspace(&self, lanes: usize) -> Self::Workspace;

    /// Returns scratch memory for the search for a starting point. Values computed with this memory may be accurate to
    /// only about four digits if that makes them cheaper.
    fn rough_workspace(&self, lanes: usize) -> Self::Workspace {
        self.workspace(lanes)
    }

    /// Computes `out[l] = log p(z[:, l])`, where `z` is a `dim × lanes` matrix.
    fn value(&self, ws: &mut Self::Workspace, z: Lanes<'_>, out: &mut [f64]);

    /// Writes the [`value`](Self::value) to `out`, and its gradient with respect to `z` to the `dim × lanes` matrix
    /// `grad`.
    fn value_grad(
        &self,
        ws: &mut Self::Workspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    );

    /// Returns the exchangeable records over which the density sums. Minibatch methods need them.
    fn records(&self) -> Option<ErasedRecords<'_>> {
        None
    }

    /// Returns the cost of computing a value and a gradient for one draw. The unit is an elementary operation, which
    /// takes about a nanosecond. `None` means that the cost is unknown or depends on the point, as it does for an
    /// adaptive solver. If the cost is unknown, inference does not evaluate the density far from the known mass of the
    /// posterior. It also refines the fit early instead of checking the fit with many draws.
    fn work(&self) -> Option<u64> {
        None
    }

    /// Returns the pairs of coordinates whose mixed second derivative may be nonzero, or `None` if these pairs are
    /// unknown.
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

/// A log density that also computes Hessian-vector products (forward over reverse).
///
/// [`linearize`](Self::linearize) fixes the draws. The caller may then call [`apply`](Self::apply) many times at the
/// same draws, as the conjugate-gradient method does.
pub trait TwiceDifferentiable: LogDensity {
    /// Fixes the draws at which [`apply`](Self::apply) evaluates the Hessian.
    fn linearize(&self, ws: &mut Self::Workspace, z: Lanes<'_>);

    /// Computes `out[:, l] = ∇² log p(z[:, l]) · v[:, l]` at the draws `z` of the last call of `linearize` with `ws`.
    ///
    /// # Panics
    /// Panics if `linearize` was not called, or if it was called with another number of lanes. Both are bugs in the
    /// caller.
    fn apply(&self, ws: &mut Self::Workspace, v: Lanes<'_>, out: LanesMut<'_>);

    /// Calls [`linearize`](Self::linearize), and then calls [`apply`](Self::apply) once.
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
