//! A baseline model, in which a single component explains all points.

use jensen_math::special::lgamma;

use crate::engine::{Engine, Heat, Measure};
use crate::model::ConjugateModel;
use crate::pointwise::{Pointwise, untempered_bound};

/// Bounds for a single component that explains all points, for comparison with a model with several components.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plain {
    /// The bound of the plain model in nats. If no values are missing, it is the log evidence of the plain model.
    pub bound: f64,
    /// The bound of a model with several components if one of them contains all points. A fit of this model with a
    /// lower bound is not optimal.
    pub within: f64,
}

/// Largest number of steps. If no values are missing, a single step suffices. Otherwise a few steps suffice.
const STEPS: usize = 100;

pub(crate) fn alone<M: ConjugateModel>(model: &M) -> f64 {
    let mut engine = Pointwise::new(model);
    let mut globals = engine.start(0);
    let all: Vec<usize> = (0..model.points()).collect();
    let mut bound = f64::NEG_INFINITY;
    for _ in 0..STEPS {
        let heat = Heat::Uniform(1.0);
        let reached = engine.local_steps(&mut globals, &all, &heat, Measure::default());
        if reached.is_none() {
            return f64::NAN;
        }
        engine.global_step(&mut globals, 1.0, 1.0);
        let next = untempered_bound(model, &globals);
        let own = (next - engine.log_jacobian()).abs().max(1.0);
        if next.is_nan() || (next - bound).abs() <= 1e-9 * own {
            return next;
        }
        bound = next;
    }
    bound
}

/// Returns the log probability that `count` draws all belong to the first of `k` categories. The probabilities of the
/// categories have a symmetric Dirichlet prior.
pub(crate) fn all_the_first(k: usize, concentration: f64, count: f64) -> f64 {
    let total = k as f64 * concentration;
    lgamma(total) - lgamma(total + count) + lgamma(concentration + count) - lgamma(concentration)
}
