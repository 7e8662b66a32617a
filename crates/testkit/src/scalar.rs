//! Batched densities from generic scalar code. Such densities are exact and short to write, but slow.

use jensen_density::{Lanes, LanesMut, LogDensity, TwiceDifferentiable};

use crate::{Dual, Real};

/// A log density written as scalar code over any [`Real`].
pub trait ScalarModel: Sync {
    /// Returns the unconstrained dimension.
    fn dim(&self) -> usize;
    /// Returns the log density at `z`.
    fn log_density<T: Real>(&self, z: &[T]) -> T;
}

/// The batched density of a [`ScalarModel`]. A gradient takes d passes with dual numbers, and a Hessian-vector product
/// takes d passes with nested dual numbers, where d is the dimension.
#[derive(Clone, Debug)]
pub struct Scalar<M>(pub M);

/// The scratch memory of a [`Scalar`] density, which includes the draws at which the density was last linearised.
#[derive(Clone, Debug, Default)]
pub struct ScalarWorkspace {
    draws: Vec<f64>,
    lanes: usize,
}

impl<M: ScalarModel> LogDensity for Scalar<M> {
    type Workspace = ScalarWorkspace;

    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn workspace(&self, _lanes: usize) -> ScalarWorkspace {
        ScalarWorkspace::default()
    }

    fn value(&self, _: &mut ScalarWorkspace, z: Lanes<'_>, out: &mut [f64]) {
        let mut point = vec![0.0; self.dim()];
        for (lane, value) in out.iter_mut().enumerate() {
            z.copy_lane(lane, &mut point);
            *value = self.0.log_density(&point);
        }
    }

    fn value_grad(
        &self,
        _: &mut ScalarWorkspace,
        z: Lanes<'_>,
        out: &mut [f64],
        mut grad: LanesMut<'_>,
    ) {
        let dim = self.dim();
        let mut point = vec![0.0; dim];
        for (lane, value) in out.iter_mut().enumerate() {
            z.copy_lane(lane, &mut point);
            *value = self.0.log_density(&point);
            let mut dual: Vec<Dual<f64>> = point.iter().map(|&x| Dual::constant(x)).collect();
            for row in 0..dim {
                dual[row].slope = 1.0;
                grad.row_mut(row)[lane] = self.0.log_density(&dual).slope;
                dual[row].slope = 0.0;
            }
        }
    }
}

impl<M: ScalarModel> TwiceDifferentiable for Scalar<M> {
    fn linearize(&self, ws: &mut ScalarWorkspace, z: Lanes<'_>) {
        ws.draws = z.as_slice().to_vec();
        ws.lanes = z.lanes();
    }

    fn apply(&self, ws: &mut ScalarWorkspace, v: Lanes<'_>, mut out: LanesMut<'_>) {
        assert!(ws.lanes == v.lanes(), "linearised at as many draws");
        let (dim, lanes) = (self.dim(), ws.lanes);
        for lane in 0..lanes {
            let mut nested: Vec<Dual<Dual<f64>>> = (0..dim)
                .map(|row| Dual {
                    value: Dual {
                        value: ws.draws[row * lanes + lane],
                        slope: v.row(row)[lane],
                    },
                    slope: Dual::constant(0.0),
                })
                .collect();
            for row in 0..dim {
                nested[row].slope.value = 1.0;
                out.row_mut(row)[lane] = self.0.log_density(&nested).slope.slope;
                nested[row].slope.value = 0.0;
            }
        }
    }
}
