//! Tests that the test densities pass the stress test, and that incorrect densities fail it.

use jensen_density::{Lanes, LanesMut, LogDensity, TwiceDifferentiable};
use jensen_testkit::{
    CorrelatedGaussian, EightSchools, Funnel, LinearRegression, LogisticRegression, Mixture,
    Scalar, StressSettings, stress, stress_twice,
};

fn passes(density: &impl TwiceDifferentiable) {
    let failures = stress_twice(density, &StressSettings::default());
    assert!(failures.is_empty(), "{}", failures[0]);
}

#[test]
fn all_models_pass() {
    passes(&CorrelatedGaussian::exchangeable(&[1.0, 2.0, 0.5], 0.7));
    passes(&Scalar(Funnel { leaves: 3 }));
    passes(&Scalar(Mixture {
        dim: 2,
        distance: 3.0,
        log_odds: 0.5,
    }));
    passes(&Scalar(LogisticRegression {
        x: vec![1.0, 0.3, 1.0, -2.0, 1.0, 1.4],
        y: vec![true, false, true],
    }));
    passes(&Scalar(LinearRegression {
        x: vec![1.0, 0.3, 1.0, -2.0, 1.0, 1.4],
        y: vec![0.2, 0.1, 3.0],
    }));
    passes(&Scalar(EightSchools { centred: true }));
    passes(&Scalar(EightSchools { centred: false }));
}

/// A Gaussian in which one coordinate of the gradient is off by one part in a thousand.
struct Wrong(CorrelatedGaussian);

impl LogDensity for Wrong {
    type Workspace = usize;
    fn dim(&self) -> usize {
        self.0.dim()
    }
    fn workspace(&self, lanes: usize) -> usize {
        self.0.workspace(lanes)
    }
    fn value(&self, ws: &mut usize, z: Lanes<'_>, out: &mut [f64]) {
        self.0.value(ws, z, out);
    }
    fn value_grad(&self, ws: &mut usize, z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
        self.0.value_grad(ws, z, out, grad.reborrow());
        grad.row_mut(1).iter_mut().for_each(|g| *g *= 1.001);
    }
}

#[test]
fn a_wrong_gradient_is_found_and_named() {
    let wrong = Wrong(CorrelatedGaussian::exchangeable(&[1.0, 1.0], 0.5));
    let failures = stress(&wrong, &StressSettings::default());
    assert!(!failures.is_empty());
    assert!(failures.iter().all(|f| f.what.contains("gradient[1]")));
}

#[test]
fn the_closed_form_bound_of_a_gaussian_is_right() {
    // The correlation ρ of two coordinates causes a gap of −½ log(1 − ρ²) between the evidence and the ELBO.
    let density = CorrelatedGaussian::exchangeable(&[1.0, 3.0], 0.6);
    let gap = -0.5 * (1.0f64 - 0.36).ln();
    assert!((density.mean_field_elbo() + gap).abs() < 1e-12);
    let sd = density.mean_field_sd();
    assert!((sd[0] - 0.8).abs() < 1e-12 && (sd[1] - 2.4).abs() < 1e-12);
}
