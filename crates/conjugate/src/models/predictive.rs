//! Predictions for new points under the fitted distribution of a mixture.

use crate::family::ExponentialFamily;
use crate::models::components::Components;
use crate::models::mixture::Mixture;

impl<C: Components> Mixture<C> {
    /// Prepares predictions for new points under the fitted q(β).
    pub fn predictive(&self, lambda: &[f64]) -> Predictive<'_, C> {
        let families: Vec<ExponentialFamily> =
            self.components().prior().into_iter().map(|p| p.0).collect();
        let weights = self.weights(lambda).into_iter().enumerate();
        let components = weights.map(|(k, weight)| {
            let here = self.marginal(lambda, k);
            let (normaliser, expected) = normaliser(&families, &here);
            PredictiveComponent {
                log_weight: weight.ln(),
                lambda: here,
                normaliser,
                expected,
            }
        });
        Predictive {
            components: components.collect(),
            families,
            data: self.components(),
        }
    }
}

pub(super) fn normaliser(families: &[ExponentialFamily], lambda: &[f64]) -> (f64, Vec<f64>) {
    let mut expected = vec![0.0; lambda.len()];
    let (mut start, mut total) = (0, 0.0);
    for family in families {
        let here = start..start + family.len();
        total += family.moments(&lambda[here.clone()], &mut expected[here.clone()]);
        start = here.end;
    }
    (total, expected)
}

/// Computes log ∫ p(x | component) q(component) for a point, in nats. The integral is a(λ + T(x)) − a(λ) plus a term
/// that is the same for all components. `before` contains a(λ) and ∇a(λ).
fn after<C: Components + ?Sized>(
    components: &C,
    families: &[ExponentialFamily],
    lambda: &[f64],
    (before, expected): (f64, &[f64]),
    point: usize,
) -> f64 {
    let mut after = vec![0.0; lambda.len()];
    components.add(point, 1.0, &mut after);
    let linear: f64 = after.iter().zip(expected).map(|(a, b)| a * b).sum();
    let constant = components.log_density(expected, point) - linear;
    after.iter_mut().zip(lambda).for_each(|(s, l)| *s += l);
    normaliser(families, &after).0 - before + constant
}

pub(super) fn predictive<C: Components + ?Sized>(
    components: &C,
    lambda: &[f64],
    point: usize,
) -> f64 {
    components.log_predictive(lambda, point).unwrap_or_else(|| {
        let families: Vec<ExponentialFamily> =
            components.prior().into_iter().map(|p| p.0).collect();
        let (before, expected) = normaliser(&families, lambda);
        after(components, &families, lambda, (before, &expected), point)
    })
}

/// The posterior predictive distribution of a mixture.
pub struct Predictive<'a, C> {
    data: &'a C,
    families: Vec<ExponentialFamily>,
    components: Vec<PredictiveComponent>,
}

struct PredictiveComponent {
    log_weight: f64,
    lambda: Vec<f64>,
    normaliser: f64,
    expected: Vec<f64>,
}

impl<C: Components> Predictive<'_, C> {
    /// Returns log `E[π_k]` + log ∫ p(x | β_k) q(β_k) for every component, in nats, at a point of the mixture's data.
    ///
    /// For conjugate families, the integral is a(λ + T(x)) − a(λ) plus a term that is the same for all components.
    pub fn at(&self, point: usize) -> Vec<f64> {
        if self.data.size(point) == 0.0 {
            return self.components.iter().map(|c| c.log_weight).collect();
        }
        let one = |c: &PredictiveComponent| {
            if let Some(known) = self.data.log_predictive(&c.lambda, point) {
                return c.log_weight + known;
            }
            let before = (c.normaliser, &c.expected[..]);
            c.log_weight + after(self.data, &self.families, &c.lambda, before, point)
        };
        self.components.iter().map(one).collect()
    }
}
