//! Tests that compare linear-response covariances with exact covariances and with derivatives of optima.

use jensen_blackbox::{
    FamilyChoice, FamilyKind, Fit, LinearResponseError, LinearResponseSettings, Method,
    NoiseSource, SaaSettings, Settings, Subject, fit, linear_response,
};
use jensen_density::{Differenced, Lanes, LanesMut, LogDensity, TwiceDifferentiable};
use jensen_math::simd::Simd;
use jensen_run::{Budget, Control, Silent};
use jensen_testkit::{
    CorrelatedGaussian, EightSchools, LinearRegression, LogisticRegression, Scalar,
};

fn source() -> NoiseSource {
    NoiseSource::new(3, Simd::detect())
}

fn all() -> LinearResponseSettings {
    LinearResponseSettings::default()
}

fn of(coordinates: &[usize]) -> LinearResponseSettings {
    LinearResponseSettings {
        coordinates: Some(coordinates.to_vec()),
        // With this limit, the method uses conjugate gradients.
        dense_limit: 0,
        ..all()
    }
}

fn assert_close(found: f64, expected: f64, tolerance: f64) {
    let error = (found - expected).abs();
    assert!(
        error <= tolerance * expected.abs().max(1e-3),
        "{found} is not {expected}"
    );
}

/// Returns `scales[i] scales[j] (rho + (1 − rho) [i = j])`, the covariance of [`CorrelatedGaussian::exchangeable`].
fn exchangeable(scales: &[f64], rho: f64, i: usize, j: usize) -> f64 {
    scales[i] * scales[j] * if i == j { 1.0 } else { rho }
}

#[test]
fn it_is_the_covariance_of_a_gaussian() {
    let scales = [1e-4, 0.3, 1.0, 20.0, 1e5];
    let target = CorrelatedGaussian::exchangeable(&scales, 0.95);
    // The start is not the optimum.
    let mut start: Vec<f64> = target
        .mean()
        .iter()
        .zip(scales)
        .map(|(m, s)| m + s)
        .collect();
    start.extend(scales.map(|s: f64| (0.1 * s).ln()));
    let dense = linear_response(&target, &start, source(), &all()).unwrap();
    let free = linear_response(&target, &start, source(), &of(&[4, 0, 2])).unwrap();
    for (k, &found) in dense.covariance.iter().enumerate() {
        assert_close(found, exchangeable(&scales, 0.95, k / 5, k % 5), 1e-8);
    }
    for (k, &found) in free.covariance.iter().enumerate() {
        let (i, j) = (free.coordinates[k / 3], free.coordinates[k % 3]);
        assert_close(found, exchangeable(&scales, 0.95, i, j), 1e-8);
    }
    assert!(free.calls.lanes() > 0 && dense.calls.lanes() > 0);

    // The approximations have these marginals. Coordinates that were not chosen have the marginals of the mean-field
    // Gaussian.
    assert_eq!(dense.approximation.name(), FamilyKind::FullRank);
    assert_eq!(free.approximation.name(), FamilyKind::LowRank { rank: 3 });
    for ((i, found), mean) in dense
        .approximation
        .sd()
        .iter()
        .enumerate()
        .zip(target.mean())
    {
        assert_close(*found, scales[i], 1e-8);
        let off = (dense.approximation.mean()[i] - mean) / scales[i];
        assert!(off.abs() < 1e-6, "{off}");
    }
    let narrow = target.mean_field_sd();
    for (i, found) in free.approximation.sd().iter().enumerate() {
        let chosen = [0, 2, 4].contains(&i);
        assert_close(*found, if chosen { scales[i] } else { narrow[i] }, 1e-6);
    }
    // The draws have the expected correlation between the first and the last coordinate.
    for approximation in [&dense.approximation, &free.approximation] {
        let draws = approximation.draws(40_000, source());
        let row = |i: usize| -> Vec<f64> {
            let (row, mean) = (draws.lanes().row(i).to_vec(), target.mean()[i]);
            row.into_iter().map(|x| (x - mean) / scales[i]).collect()
        };
        let product: f64 = row(0).iter().zip(row(4)).map(|(a, b)| a * b).sum();
        assert_close(product / 40_000.0, 0.95, 0.03);
    }
}

/// The tilted log density `log p(z) + t z[coordinate]`.
struct Tilted<D> {
    inner: D,
    coordinate: usize,
    t: f64,
}

impl<D: LogDensity> LogDensity for Tilted<D> {
    type Workspace = D::Workspace;

    fn dim(&self) -> usize {
        self.inner.dim()
    }
    fn workspace(&self, lanes: usize) -> D::Workspace {
        self.inner.workspace(lanes)
    }
    fn value(&self, ws: &mut D::Workspace, z: Lanes<'_>, out: &mut [f64]) {
        self.inner.value(ws, z, out);
        for (out, z) in out.iter_mut().zip(z.row(self.coordinate)) {
            *out += self.t * z;
        }
    }
    fn value_grad(
        &self,
        ws: &mut D::Workspace,
        z: Lanes<'_>,
        out: &mut [f64],
        mut grad: LanesMut<'_>,
    ) {
        self.inner.value_grad(ws, z, out, grad.reborrow());
        for (out, z) in out.iter_mut().zip(z.row(self.coordinate)) {
            *out += self.t * z;
        }
        grad.row_mut(self.coordinate)
            .iter_mut()
            .for_each(|g| *g += self.t);
    }
}

impl<D: TwiceDifferentiable> TwiceDifferentiable for Tilted<D> {
    fn linearize(&self, ws: &mut D::Workspace, z: Lanes<'_>) {
        self.inner.linearize(ws, z);
    }
    fn apply(&self, ws: &mut D::Workspace, v: Lanes<'_>, out: LanesMut<'_>) {
        self.inner.apply(ws, v, out);
    }
}

fn logistic() -> Scalar<LogisticRegression> {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for i in 0..30 {
        let dose = f64::from(i * 11 % 30) / 10.0 - 1.0;
        x.extend([1.0, dose, dose * dose]);
        y.push(i * 7 % 10 < 3 + i * 11 % 30 / 6);
    }
    Scalar(LogisticRegression { x, y })
}

#[test]
fn it_is_the_derivative_of_the_optimum_of_tilted_densities() {
    let start = [0.0, 0.0, 0.0, -1.0, -1.0, -1.0];
    let response = linear_response(&logistic(), &start, source(), &all()).unwrap();
    let free = linear_response(&logistic(), &start, source(), &of(&[0, 1, 2])).unwrap();
    let mean = |coordinate: usize, t: f64| {
        let tilted = Tilted {
            inner: logistic(),
            coordinate,
            t,
        };
        let response = linear_response(&tilted, &start, source(), &all()).unwrap();
        response.approximation.mean().to_vec()
    };
    let h = 1e-3;
    for j in 0..3 {
        let (up, down) = (mean(j, h), mean(j, -h));
        for i in 0..3 {
            let slope = (up[i] - down[i]) / (2.0 * h);
            assert_close(response.covariance[i * 3 + j], slope, 1e-4);
            assert_close(free.covariance[i * 3 + j], slope, 1e-4);
        }
    }
}

#[test]
fn it_repairs_the_spread_of_a_collinear_regression() {
    // In the regression y = a + b x with x far from 0, the intercept and the slope have a correlation of −0.9998. With
    // flat priors on a, b and log σ, the covariance of the coefficients is RSS / (n − k − 2) (XᵀX)⁻¹ (a multivariate
    // t).
    let n = 60;
    let xs: Vec<f64> = (0..n)
        .map(|i| 150.0 + 40.0 * f64::from(i * 37 % n) / f64::from(n))
        .collect();
    let ys: Vec<f64> = xs
        .iter()
        .zip(0..n)
        .map(|(x, i)| 10.0 + 0.2 * x + 4.0 * (f64::from(i * 29 % 31) / 31.0 - 0.5))
        .collect();
    let m = f64::from(n);
    let (mx, my) = (xs.iter().sum::<f64>() / m, ys.iter().sum::<f64>() / m);
    let sxx: f64 = xs.iter().map(|x| (x - mx).powi(2)).sum();
    let sxy: f64 = xs.iter().zip(&ys).map(|(x, y)| (x - mx) * (y - my)).sum();
    let syy: f64 = ys.iter().map(|y| (y - my).powi(2)).sum();
    let variance = (syy - sxy * sxy / sxx) / (m - 4.0);
    let exact = [
        (variance * (1.0 / m + mx * mx / sxx)).sqrt(),
        (variance / sxx).sqrt(),
        // log σ is half the logarithm of a scaled inverse χ² variable with n − 2 degrees of freedom, whose variance is
        // ψ′/4.
        (0.25 * 2.0 / (m - 3.0)).sqrt(),
    ];
    let slope = sxy / sxx;
    let start = [my - slope * mx, slope, 0.0, -3.0, -8.0, -2.0];
    let model = Scalar(LinearRegression {
        x: xs.iter().flat_map(|x| [1.0, *x]).collect(),
        y: ys,
    });
    let response = linear_response(&model, &start, source(), &all()).unwrap();
    for (i, sd) in exact.into_iter().enumerate() {
        let found = response.covariance[i * 3 + i].sqrt();
        assert_close(found, sd, 0.03);
    }
}

fn responded(density: &impl TwiceDifferentiable) -> Fit {
    let settings = Settings {
        method: Method::Saa(SaaSettings::default()),
        family: FamilyChoice::Only(FamilyKind::MeanField),
        ..Settings::default()
    };
    let clock = || 0.0;
    let mut silent = Silent;
    let mut control = Control::new(Budget::iterations(10_000), &clock, &mut silent);
    let mut fit = fit(density, &settings, &Subject::default(), &mut control).unwrap();
    fit.respond(density, &settings, &all());
    fit
}

#[test]
fn a_fit_takes_it_as_a_family_of_its_own_and_says_when_it_overshoots() {
    let good = responded(&CorrelatedGaussian::exchangeable(&[1.0, 3.0, 0.1], 0.9));
    assert_eq!(good.best().family, FamilyKind::FullRank);
    assert_eq!(good.families[0].family, FamilyKind::MeanField);
    assert!(good.trusted(), "{:?}", good.warnings());
    assert!(good.elbo().abs() < 1e-3 && good.families[0].evaluation.elbo.mean < -0.5);

    // The scale of the effects has a long tail towards 0, along which a first-order correction overshoots.
    let far = responded(&Scalar(EightSchools { centred: false }));
    assert!(!far.trusted());
    let said = far.warnings().join("\n");
    assert!(said.contains("lowers the ELBO"), "{said}");
}

struct Slope;

impl LogDensity for Slope {
    type Workspace = ();

    fn dim(&self) -> usize {
        2
    }
    fn workspace(&self, _lanes: usize) {}
    fn value(&self, (): &mut (), z: Lanes<'_>, out: &mut [f64]) {
        out.copy_from_slice(z.row(1));
    }
    fn value_grad(&self, ws: &mut (), z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
        self.value(ws, z, out);
        grad.row_mut(0).fill(0.0);
        grad.row_mut(1).fill(1.0);
    }
}

#[test]
fn what_has_no_response_says_why() {
    let target = CorrelatedGaussian::exchangeable(&[1.0; 4], 0.5);
    let start = [0.0; 8];
    let limited = LinearResponseSettings {
        dense_limit: 3,
        ..all()
    };
    let error = |settings| linear_response(&target, &start, source(), &settings).unwrap_err();
    assert_eq!(
        error(limited),
        LinearResponseError::TooMany { dim: 4, limit: 3 }
    );
    assert_eq!(error(of(&[7])), LinearResponseError::NoSuchCoordinate(7));
    let slope = Differenced(Slope);
    let error = linear_response(&slope, &[0.0; 4], source(), &all()).unwrap_err();
    assert!(
        matches!(
            error,
            LinearResponseError::NoOptimum | LinearResponseError::NotConcave
        ),
        "{error}"
    );
}
