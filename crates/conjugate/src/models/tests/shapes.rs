//! Tests of the shapes of covariance matrices.

use super::*;

/// Computes the bound of a mixture whose points are assigned with certainty. The bound then equals log p(x, z).
pub(super) fn assigned<C: Components>(model: &Mixture<C>, of: impl Fn(usize) -> usize) -> f64 {
    let mut lambda = model.blocks().prior().to_vec();
    for point in 0..model.points() {
        add(model, point, of(point), &mut lambda);
    }
    let t = model.blocks().expectations(&lambda);
    let energy = |point: usize| {
        let here = model.component(&t, of(point));
        t[of(point)] + model.components().log_density(here, point)
    };
    let energies: f64 = (0..model.points()).map(energy).sum();
    energies - model.blocks().divergence(&lambda)
}

fn add<C: Components>(model: &Mixture<C>, point: usize, k: usize, lambda: &mut [f64]) {
    lambda[k] += 1.0;
    let part = model.parts()[k].clone();
    model.components().add(point, 1.0, &mut lambda[part]);
}

#[test]
fn the_bound_of_assigned_points_is_their_evidence() {
    let data = plane(30);
    for covariance in SHAPES {
        let model = Mixture::new(Gaussians::new(covariance, 2, data.clone()), 3, 0.7);
        let of = |point: usize| point * point % 3;
        // The chain rule, in which each point is predicted from the points before it.
        let mut lambda = model.blocks().prior().to_vec();
        let mut evidence = 0.0;
        for point in 0..30 {
            evidence += model.predictive(&lambda).at(point)[of(point)];
            add(&model, point, of(point), &mut lambda);
        }
        let found = assigned(&model, of);
        assert!(
            (found - evidence).abs() < 1e-8,
            "{covariance:?}: {found} {evidence}"
        );
    }
}

#[test]
fn tied_components_share_their_covariance_matrix_and_others_do_not() {
    let mut s = stream(21);
    let mut normal = || crate::draws::normal(&mut s);
    let data: Vec<f64> = (0..400)
        .flat_map(|i| {
            let centre = if i % 4 == 0 { 6.0 } else { -2.0 };
            let (x, y) = (normal(), normal());
            [centre + x, 0.9 * x + 0.5 * y]
        })
        .collect();
    let centres = |covariance| {
        let model = Mixture::new(Gaussians::new(covariance, 2, data.clone()), 2, 1.0);
        let lambda = trace(&model, &settings(Temper::None, batch())).1;
        let of = |k: usize| {
            let own = model.marginal(&lambda, k);
            let gaussians = model.components();
            (gaussians.mean(&own)[0], gaussians.covariance(&own))
        };
        let mut both = [of(0), of(1)];
        both.sort_by(|a, b| a.0.total_cmp(&b.0));
        both
    };
    let [first, second] = centres(Covariance::Tied);
    assert!((first.0 + 2.0).abs() < 0.3 && (second.0 - 6.0).abs() < 0.3);
    let truth = [1.0, 0.9, 0.9, 1.06];
    for ((found, other), truth) in first.1.iter().zip(&second.1).zip(truth) {
        assert!((found - other).abs() < 1e-12, "{found} {other}");
        assert!((found - truth).abs() < 0.15, "{found} {truth}");
    }
    let [first, second] = centres(Covariance::Spherical);
    assert!(first.1 != second.1 && first.1[0] == first.1[1]);
    assert!((first.1[0] - 1.03).abs() < 0.2, "{:?}", first.1);
}
