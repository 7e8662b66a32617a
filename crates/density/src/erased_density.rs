//! Type-erased densities. With them, the compiler generates the code of an algorithm only once instead of once per
//! density.

use std::sync::Arc;

use crate::{ErasedRecords, Lanes, LanesMut, LogDensity, Pattern, TwiceDifferentiable};

/// A borrowed [`TwiceDifferentiable`] density whose concrete type is erased. Its results are bitwise identical to those
/// of the underlying density. Each call for a whole batch of draws costs one additional indirect call.
///
/// ```
/// use jensen_density::{Differenced, ErasedDensity, Lanes, LanesMut, LogDensity};
///
/// struct Flat;
///
/// impl LogDensity for Flat {
///     type Workspace = ();
///     fn dim(&self) -> usize {
///         3
///     }
///     fn workspace(&self, _lanes: usize) {}
///     fn value(&self, _: &mut (), _z: Lanes<'_>, out: &mut [f64]) {
///         out.fill(0.0);
///     }
///     fn value_grad(&self, _: &mut (), _z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
///         out.fill(0.0);
///         grad.as_mut_slice().fill(0.0);
///     }
/// }
///
/// let flat = Differenced(Flat);
/// let density = ErasedDensity::new(&flat);
/// let mut workspace = density.workspace(8);
/// let mut values = [f64::NAN; 8];
/// density.value(&mut workspace, Lanes::new(&[0.0; 24], 3, 8), &mut values);
/// assert_eq!(values, [0.0; 8]);
/// ```
#[derive(Clone, Copy)]
pub struct ErasedDensity<'a>(&'a dyn Erased);

impl<'a> ErasedDensity<'a> {
    /// Creates a borrowed view of `density`.
    pub fn new<D: TwiceDifferentiable>(density: &'a D) -> Self {
        Self(density)
    }
}

impl std::fmt::Debug for ErasedDensity<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ErasedDensity(of {} coordinates)", self.0.dim())
    }
}

/// The scratch memory of an [`ErasedDensity`], together with a reference to the density that uses it.
pub struct DensityWorkspace<'a>(Box<dyn Evaluate + 'a>);

impl std::fmt::Debug for DensityWorkspace<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DensityWorkspace")
    }
}

trait Erased: Sync {
    fn dim(&self) -> usize;
    fn evaluator(&self, lanes: usize, rough: bool) -> Box<dyn Evaluate + '_>;
    fn records(&self) -> Option<ErasedRecords<'_>>;
    fn work(&self) -> Option<u64>;
    fn pattern(&self) -> Option<Arc<Pattern>>;
}

impl<D: TwiceDifferentiable> Erased for D {
    fn dim(&self) -> usize {
        LogDensity::dim(self)
    }
    fn evaluator(&self, lanes: usize, rough: bool) -> Box<dyn Evaluate + '_> {
        let workspace = if rough {
            self.rough_workspace(lanes)
        } else {
            self.workspace(lanes)
        };
        Box::new(Evaluator {
            density: self,
            workspace,
        })
    }
    fn records(&self) -> Option<ErasedRecords<'_>> {
        LogDensity::records(self)
    }
    fn work(&self) -> Option<u64> {
        LogDensity::work(self)
    }
    fn pattern(&self) -> Option<Arc<Pattern>> {
        LogDensity::pattern(self)
    }
}

struct Evaluator<'a, D: TwiceDifferentiable> {
    density: &'a D,
    workspace: D::Workspace,
}

trait Evaluate: Send {
    fn value(&mut self, z: Lanes<'_>, out: &mut [f64]);
    fn value_grad(&mut self, z: Lanes<'_>, out: &mut [f64], grad: LanesMut<'_>);
    fn linearize(&mut self, z: Lanes<'_>);
    fn apply(&mut self, v: Lanes<'_>, out: LanesMut<'_>);
    fn hvp(&mut self, z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>);
}

impl<D: TwiceDifferentiable> Evaluate for Evaluator<'_, D> {
    fn value(&mut self, z: Lanes<'_>, out: &mut [f64]) {
        self.density.value(&mut self.workspace, z, out);
    }
    fn value_grad(&mut self, z: Lanes<'_>, out: &mut [f64], grad: LanesMut<'_>) {
        self.density.value_grad(&mut self.workspace, z, out, grad);
    }
    fn linearize(&mut self, z: Lanes<'_>) {
        self.density.linearize(&mut self.workspace, z);
    }
    fn apply(&mut self, v: Lanes<'_>, out: LanesMut<'_>) {
        self.density.apply(&mut self.workspace, v, out);
    }
    fn hvp(&mut self, z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>) {
        self.density.hvp(&mut self.workspace, z, v, out);
    }
}

impl<'a> LogDensity for ErasedDensity<'a> {
    type Workspace = DensityWorkspace<'a>;

    fn dim(&self) -> usize {
        self.0.dim()
    }
    fn workspace(&self, lanes: usize) -> Self::Workspace {
        DensityWorkspace(self.0.evaluator(lanes, false))
    }
    fn rough_workspace(&self, lanes: usize) -> Self::Workspace {
        DensityWorkspace(self.0.evaluator(lanes, true))
    }
    fn value(&self, ws: &mut Self::Workspace, z: Lanes<'_>, out: &mut [f64]) {
        ws.0.value(z, out);
    }
    fn value_grad(
        &self,
        ws: &mut Self::Workspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        ws.0.value_grad(z, out, grad);
    }
    fn records(&self) -> Option<ErasedRecords<'_>> {
        self.0.records()
    }
    fn work(&self) -> Option<u64> {
        self.0.work()
    }
    fn pattern(&self) -> Option<Arc<Pattern>> {
        self.0.pattern()
    }
}

impl TwiceDifferentiable for ErasedDensity<'_> {
    fn linearize(&self, ws: &mut Self::Workspace, z: Lanes<'_>) {
        ws.0.linearize(z);
    }
    fn apply(&self, ws: &mut Self::Workspace, v: Lanes<'_>, out: LanesMut<'_>) {
        ws.0.apply(v, out);
    }
    fn hvp(&self, ws: &mut Self::Workspace, z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>) {
        ws.0.hvp(z, v, out);
    }
}
