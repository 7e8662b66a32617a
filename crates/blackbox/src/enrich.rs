//! The starting point of a richer family. It is the result of a simpler family, adapted to the curvature of the
//! density.

use std::sync::Arc;

use jensen_density::TwiceDifferentiable;

use crate::calls::Calls;
use crate::family::{Curvature, Family, SampleBound};
use crate::noise::{NoisePurpose, NoiseSource};
use crate::objective::Objective;

pub(crate) fn enrich<D: TwiceDifferentiable>(
    density: &D,
    source: NoiseSource,
    family: &Arc<dyn Family>,
    mean: &[f64],
    log_sd: &[f64],
) -> (Vec<f64>, Calls) {
    let mut draws = FixedDraws {
        density,
        family: family.clone(),
        source,
        objective: None,
    };
    let omega = family.enrich(mean, log_sd, source, &mut draws);
    let calls = draws.objective.as_mut().map(Objective::take_calls);
    (omega, calls.unwrap_or_default())
}

struct FixedDraws<'a, D: TwiceDifferentiable> {
    density: &'a D,
    family: Arc<dyn Family>,
    source: NoiseSource,
    objective: Option<Objective<'a, D>>,
}

impl<'a, D: TwiceDifferentiable> FixedDraws<'a, D> {
    fn objective(&mut self) -> &mut Objective<'a, D> {
        self.objective
            .as_mut()
            .expect("a family fixes the draws first")
    }
}

impl<D: TwiceDifferentiable> SampleBound for FixedDraws<'_, D> {
    fn fix(&mut self, lanes: usize) {
        let rows = self.family.noise_dim();
        let noise = self
            .source
            .matched(NoisePurpose::Start, u64::MAX - 2, rows, lanes);
        self.objective = Some(Objective::new(
            self.density,
            self.family.clone(),
            noise,
            lanes,
        ));
    }

    fn value_gradient(&mut self, omega: &[f64], out: &mut [f64]) -> f64 {
        self.objective().value_gradient(omega, out)
    }

    fn curvature(&mut self, omega: &[f64], draws: usize) -> Option<Curvature> {
        self.objective().curvature(omega, draws)
    }
}

#[cfg(test)]
mod tests {
    use jensen_math::simd::Simd;
    use jensen_testkit::CorrelatedGaussian;

    use super::*;
    use crate::family::FullRank;

    #[test]
    fn a_gaussian_is_matched_exactly() {
        let target = CorrelatedGaussian::exchangeable(&[0.1, 2.0, 30.0], 0.9);
        let source = NoiseSource::new(3, Simd::detect());
        let start = [5.0, -3.0, 2.0, 0.0, 0.0, 0.0];
        let (omega, calls) = enrich(
            &target,
            source,
            &(Arc::new(FullRank::new(3)) as Arc<dyn Family>),
            &start[..3],
            &start[3..],
        );
        assert!(calls.lanes() > 0);
        for (found, mean) in omega.iter().zip(target.mean()) {
            assert!((found - mean).abs() < 1e-9);
        }
        // The scales of the density `exchangeable()` are standard deviations.
        let sd = FullRank::new(3).marginal_sd(&omega);
        for (found, scale) in sd.iter().zip([0.1, 2.0, 30.0]) {
            assert!((found / scale - 1.0).abs() < 1e-9);
        }
    }
}
