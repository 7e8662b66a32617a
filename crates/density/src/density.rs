//! Batched log densities and their derivatives.

use std::any::Any;

use crate::{Lanes, LanesMut};

/// A log density on ℝᵈ, evaluated for many draws at once. The model is immutable; scratch memory
/// belongs to the caller and is made by [`LogDensity::workspace`].
///
/// * Values are in nats; constants may be kept or dropped, but a method that reports an evidence
///   bound needs them kept.
/// * `-∞` is a legal value. A `NaN` value marks that lane as rejected and says nothing about the
///   others. The gradient of a lane whose value is not finite is unspecified.
/// * The density owns its threading: an estimator makes one call for its whole batch. The result of
///   a lane does not depend on how many other lanes there are, nor on the number of threads.
pub trait LogDensity: Sync {
    /// Scratch memory of one caller.
    type Workspace: Send;

    /// The unconstrained dimension d.
    fn dim(&self) -> usize;

    /// Scratch memory for batches of up to `lanes` draws.
    fn workspace(&self, lanes: usize) -> Self::Workspace;

    /// `out[l] = log p(z[:, l])` for `z` of shape `dim × lanes`.
    fn value(&self, ws: &mut Self::Workspace, z: Lanes<'_>, out: &mut [f64]);

    /// The value as above, and the gradient with respect to `z` into `grad` (`dim × lanes`).
    fn value_grad(
        &self,
        ws: &mut Self::Workspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    );
}

impl<D: LogDensity> LogDensity for &D {
    type Workspace = D::Workspace;

    fn dim(&self) -> usize {
        (**self).dim()
    }
    fn workspace(&self, lanes: usize) -> Self::Workspace {
        (**self).workspace(lanes)
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
}

/// A log density with Hessian-vector products (forward over reverse).
///
/// [`linearize`](Self::linearize) fixes the draws; [`apply`](Self::apply) may then be called many
/// times, as conjugate gradients do.
pub trait TwiceDifferentiable: LogDensity {
    /// Fixes the draws at which [`apply`](Self::apply) multiplies.
    fn linearize(&self, ws: &mut Self::Workspace, z: Lanes<'_>);

    /// `out[:, l] = ∇² log p(z[:, l]) · v[:, l]` at the draws of the last `linearize` on `ws`.
    ///
    /// # Panics
    /// When nothing was linearised or the number of lanes differs: a caller's bug.
    fn apply(&self, ws: &mut Self::Workspace, v: Lanes<'_>, out: LanesMut<'_>);

    /// [`linearize`](Self::linearize) and one [`apply`](Self::apply).
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

/// Scratch memory of an [`ErasedDensity`].
pub type ErasedWorkspace = Box<dyn Any + Send>;

/// The object-safe face of a density with second derivatives; every
/// [`TwiceDifferentiable`] density with a `'static` workspace has it.
pub trait ErasedDensity: Sync {
    /// See [`LogDensity::dim`].
    fn erased_dim(&self) -> usize;
    /// See [`LogDensity::workspace`].
    fn erased_workspace(&self, lanes: usize) -> ErasedWorkspace;
    /// See [`LogDensity::value`].
    fn erased_value(&self, ws: &mut ErasedWorkspace, z: Lanes<'_>, out: &mut [f64]);
    /// See [`LogDensity::value_grad`].
    fn erased_value_grad(
        &self,
        ws: &mut ErasedWorkspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    );
    /// See [`TwiceDifferentiable::linearize`].
    fn erased_linearize(&self, ws: &mut ErasedWorkspace, z: Lanes<'_>);
    /// See [`TwiceDifferentiable::apply`].
    fn erased_apply(&self, ws: &mut ErasedWorkspace, v: Lanes<'_>, out: LanesMut<'_>);
}

fn concrete<W: 'static>(ws: &mut ErasedWorkspace) -> &mut W {
    ws.downcast_mut()
        .expect("a workspace made by the same density")
}

impl<D> ErasedDensity for D
where
    D: TwiceDifferentiable,
    D::Workspace: 'static,
{
    fn erased_dim(&self) -> usize {
        self.dim()
    }
    fn erased_workspace(&self, lanes: usize) -> ErasedWorkspace {
        Box::new(self.workspace(lanes))
    }
    fn erased_value(&self, ws: &mut ErasedWorkspace, z: Lanes<'_>, out: &mut [f64]) {
        self.value(concrete(ws), z, out);
    }
    fn erased_value_grad(
        &self,
        ws: &mut ErasedWorkspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        self.value_grad(concrete(ws), z, out, grad);
    }
    fn erased_linearize(&self, ws: &mut ErasedWorkspace, z: Lanes<'_>) {
        self.linearize(concrete(ws), z);
    }
    fn erased_apply(&self, ws: &mut ErasedWorkspace, v: Lanes<'_>, out: LanesMut<'_>) {
        self.apply(concrete(ws), v, out);
    }
}

/// A borrowed [`ErasedDensity`] as a density again, so that generic algorithms take either.
#[derive(Clone, Copy)]
pub struct Erased<'a>(pub &'a dyn ErasedDensity);

impl LogDensity for Erased<'_> {
    type Workspace = ErasedWorkspace;

    fn dim(&self) -> usize {
        self.0.erased_dim()
    }
    fn workspace(&self, lanes: usize) -> ErasedWorkspace {
        self.0.erased_workspace(lanes)
    }
    fn value(&self, ws: &mut ErasedWorkspace, z: Lanes<'_>, out: &mut [f64]) {
        self.0.erased_value(ws, z, out);
    }
    fn value_grad(
        &self,
        ws: &mut ErasedWorkspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        self.0.erased_value_grad(ws, z, out, grad);
    }
}

impl TwiceDifferentiable for Erased<'_> {
    fn linearize(&self, ws: &mut ErasedWorkspace, z: Lanes<'_>) {
        self.0.erased_linearize(ws, z);
    }
    fn apply(&self, ws: &mut ErasedWorkspace, v: Lanes<'_>, out: LanesMut<'_>) {
        self.0.erased_apply(ws, v, out);
    }
}
