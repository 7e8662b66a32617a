//! Compares variances of gradient estimators with their bounds.

use std::sync::Arc;

use jensen_blackbox::Family;
use jensen_blackbox::family::MeanField;
use jensen_blackbox::records::{
    Batches, EvaluationPoint, GradientRequest, Gradients, RecordEstimator, variances,
};
use jensen_density::Lanes;

use super::support::{australian, optimum};

#[test]
fn variances_respect_their_bounds_at_the_optimum() {
    let model = australian();
    let omega = optimum(&model);
    let batches = Batches::new(1, 690, 5).unwrap();
    let family: Arc<dyn Family> = Arc::new(MeanField::new(14));
    let mut found = Vec::new();
    for estimator in RecordEstimator::ALL {
        let mut gradients = Gradients::new(&model, family.clone(), 1, 5);
        // The tables are at the optimum itself, which is the limit of a converged run.
        let mut table = gradients.table(estimator);
        let order = batches.order(0);
        let mut out = vec![0.0; omega.len()];
        let mut noise = Vec::new();
        for k in 0..batches.per_epoch() {
            gradients.noise(5, k as u64, &mut noise);
            let request = GradientRequest {
                estimator,
                omega: &omega,
                noise: Lanes::new(&noise, 14, 1),
                batch: &order[batches.range(k)],
                visit: estimator.remembers(),
            };
            assert!(gradients.evaluate(&request, &table, &mut out));
            gradients.visit(&request, &mut table, k + 1 == batches.per_epoch());
        }
        if estimator == RecordEstimator::JointSvrg {
            gradients.anchor(&omega[..14], &mut table);
        }
        let point = EvaluationPoint {
            omega: &omega,
            table: &table,
            batches: &batches,
            seed: 6,
            iteration: 1,
            samples: 600,
        };
        found.push((estimator, variances(&mut gradients, estimator, &point)));
    }
    let of = |name: &str| found.iter().find(|(e, _)| e.name() == name).unwrap().1;
    let naive = of("naive");
    let (subsampling, monte_carlo) = (naive.subsampling, naive.monte_carlo);
    // In the decomposition of the naive estimator, each part is smaller than the whole. All of them have the orders of
    // magnitude that the paper reports (9.16e4, 8.61e4 and 2.07e3).
    assert!((3e4..3e5).contains(&naive.total.mean), "{:?}", naive.total);
    assert!((3e4..3e5).contains(&subsampling.mean), "{subsampling:?}");
    assert!((5e2..8e3).contains(&monte_carlo.mean), "{monte_carlo:?}");
    // This compares the variance with Eqs. 10 and 14, to within four standard errors.
    let cv = of("cv").total;
    assert!(cv.mean > subsampling.mean - 4.0 * (cv.standard_error + subsampling.standard_error));
    assert!(cv.mean < naive.total.mean);
    let inc = of("inc").total;
    assert!(inc.mean > monte_carlo.mean - 4.0 * (inc.standard_error + monte_carlo.standard_error));
    assert!(inc.mean < 1.5 * monte_carlo.mean, "{inc:?} {monte_carlo:?}");
    // The variance of joint is below both bounds.
    for name in ["joint", "joint-svrg"] {
        let joint = of(name).total;
        let upper = joint.mean + 4.0 * joint.standard_error;
        assert!(
            upper < subsampling.mean && upper < monte_carlo.mean,
            "{name} {joint:?}"
        );
    }
    // If the draw is integrated out, only the part of the prior in the gradient of the spread is still sampled.
    let exact = of("joint-exact").total.mean;
    let sampled: f64 = omega[14..].iter().map(|l| 2.0 * (4.0 * l).exp()).sum();
    assert!(
        exact < 1.2 * sampled && exact < 0.02 * of("joint").total.mean,
        "{exact} {sampled}"
    );
}
