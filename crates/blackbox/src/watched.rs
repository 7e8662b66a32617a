//! A density that stops evaluating when a step is interrupted.
//!
//! A density may itself stop an evaluation when the time is up, and then its results are incomplete. The wrapper
//! therefore checks the interrupt again after each evaluation, so that no step uses incomplete results.

use std::sync::Arc;

use jensen_density::{ErasedRecords, Lanes, LanesMut, LogDensity, Pattern, TwiceDifferentiable};
use jensen_run::Interrupt;

/// A density whose values are NaN after an [`Interrupt`] has ended the step.
pub(crate) struct Watched<'a, D> {
    pub density: &'a D,
    pub interrupt: &'a Interrupt<'a>,
}

impl<D> Watched<'_, D> {
    fn heed(&self, out: &[f64]) {
        if out.iter().any(|x| x.is_nan()) {
            self.interrupt.is_over();
        }
    }
}

impl<D: LogDensity> LogDensity for Watched<'_, D> {
    type Workspace = D::Workspace;

    fn dim(&self) -> usize {
        self.density.dim()
    }

    fn workspace(&self, lanes: usize) -> Self::Workspace {
        self.density.workspace(lanes)
    }

    fn rough_workspace(&self, lanes: usize) -> Self::Workspace {
        self.density.rough_workspace(lanes)
    }

    fn value(&self, ws: &mut Self::Workspace, z: Lanes<'_>, out: &mut [f64]) {
        if self.interrupt.is_over() {
            out.fill(f64::NAN);
        } else {
            self.density.value(ws, z, out);
            self.heed(out);
        }
    }

    fn value_grad(
        &self,
        ws: &mut Self::Workspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        if self.interrupt.is_over() {
            out.fill(f64::NAN);
        } else {
            self.density.value_grad(ws, z, out, grad);
            self.heed(out);
        }
    }

    fn records(&self) -> Option<ErasedRecords<'_>> {
        self.density.records()
    }

    fn work(&self) -> Option<u64> {
        self.density.work()
    }

    fn pattern(&self) -> Option<Arc<Pattern>> {
        self.density.pattern()
    }
}

impl<D: TwiceDifferentiable> TwiceDifferentiable for Watched<'_, D> {
    fn linearize(&self, ws: &mut Self::Workspace, z: Lanes<'_>) {
        if !self.interrupt.is_over() {
            self.density.linearize(ws, z);
        }
    }

    fn apply(&self, ws: &mut Self::Workspace, v: Lanes<'_>, mut out: LanesMut<'_>) {
        // After the step has ended, there may be no linearisation.
        if self.interrupt.is_over() {
            for row in 0..self.dim() {
                out.row_mut(row).fill(f64::NAN);
            }
        } else {
            self.density.apply(ws, v, out.reborrow());
            self.heed(out.as_mut_slice());
        }
    }
}
