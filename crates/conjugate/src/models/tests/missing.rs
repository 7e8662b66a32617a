//! Tests of missing values, and of densities of new points.

use super::*;

/// Draws rows of two values. In every third row, one of the values is missing.
fn holes(n: usize) -> Vec<f64> {
    let mut data = plane(n);
    for i in (0..n).step_by(3) {
        data[2 * i + (i / 3) % 2] = f64::NAN;
    }
    data
}

#[test]
fn missing_values_are_integrated_out() {
    let data = holes(12);
    for covariance in SHAPES {
        let model = Mixture::new(Gaussians::new(covariance, 2, data.clone()), 2, 1.0);
        let t = model.blocks().expectations(&model.start(&mut stream(7)));
        for (point, column) in [(0, 0), (3, 1)] {
            let known = data[2 * point + 1 - column];
            // The same rows with the missing value at any position.
            let step = 0.01;
            let grid: Vec<f64> = (-4000..=4000).map(|i| step * f64::from(i)).collect();
            let rows = grid
                .iter()
                .flat_map(|&x| if column == 0 { [x, known] } else { [known, x] });
            let dense = Mixture::new(model.components().with_data(rows.collect()), 2, 1.0);
            for tau in [1.0, 0.5] {
                let joint = |i: usize, k: usize| {
                    t[k] + dense.components().log_density(dense.component(&t, k), i)
                };
                let mut scratch = MixtureScratch::default();
                let local = model.local(&t, point, tau, &mut [], &mut scratch);
                let found = tau * local.energy + local.entropy;
                let cells = (0..grid.len()).flat_map(|i| [(i, 0), (i, 1)]);
                let logs: Vec<f64> = match covariance.is_matrix() {
                    true => cells.map(|(i, k)| tau * joint(i, k) + step.ln()).collect(),
                    // Values without effect are not tempered.
                    false => (0..2)
                        .map(|k| {
                            let column = 1 - column;
                            let all = model.component(&t, k);
                            let own = match covariance {
                                Covariance::Spherical => {
                                    [&all[2 * column..2 * column + 2], &all[4..]].concat()
                                }
                                _ => all[4 * column..4 * column + 4].to_vec(),
                            };
                            let one = Gaussians::new(covariance, 1, vec![known]);
                            tau * (t[k] + one.log_density(&own, 0))
                        })
                        .collect(),
                };
                let exact = log_sum_exp_slice(&logs);
                assert!(
                    (found - exact).abs() < 1e-6,
                    "{covariance:?} {tau}: {found} {exact}"
                );
            }
            let mut scratch = MixtureScratch::default();
            let local = model.local(&t, point, 0.7, &mut [], &mut scratch);
            let mut statistics = vec![0.0; t.len()];
            model.add_statistics(point, 1.0, &scratch, &mut statistics);
            let dot: f64 = statistics.iter().zip(&t).map(|(a, b)| a * b).sum();
            let known = if covariance.is_matrix() { 2.0 } else { 1.0 };
            let energy = dot - 0.5 * known * (2.0 * std::f64::consts::PI).ln();
            assert!(
                (energy - local.energy).abs() < 1e-9,
                "{energy} {}",
                local.energy
            );
        }
    }
}

/// Computes the evidence of a small one-component mixture over the plane with missing values by the chain rule of
/// predictive densities. If missing values have no effect, q contains only β, and the bound equals the evidence. If q
/// also contains missing values, the bound stays below the evidence.
#[test]
fn bounds_with_missing_values_stay_below_the_evidence() {
    let data = holes(6);
    let bound = |covariance, data: &[f64]| {
        let model = Mixture::new(Gaussians::new(covariance, 2, data.to_vec()), 1, 1.0);
        let mode = Mode::Batch {
            tolerance: 1e-12,
            max_iterations: 500,
        };
        ended(&model, Temper::None, mode, 1).0
    };
    // For independent columns, each point is conditional on the points before it.
    let model = Mixture::new(
        Gaussians::new(Covariance::Diagonal, 2, data.clone()),
        1,
        1.0,
    );
    let mut lambda = model.blocks().prior().to_vec();
    let mut evidence = 0.0;
    for point in 0..6 {
        evidence += model.predictive(&lambda).at(point)[0];
        lambda[0] += 1.0;
        model.components().add(point, 1.0, &mut lambda[1..]);
    }
    let found = bound(Covariance::Diagonal, &data);
    assert!((found - evidence).abs() < 1e-8, "{found} {evidence}");
    // For tied columns, this is the evidence of the complete rows, integrated over the two missing values by the
    // trapezoidal rule.
    let centred = Gaussians::new(Covariance::Full, 2, data.clone());
    let complete = |x: f64, y: f64| {
        let mut data = data.clone();
        (data[0], data[7]) = (x, y);
        let model = Mixture::new(centred.with_data(data), 1, 1.0);
        let mut lambda = model.blocks().prior().to_vec();
        let mut evidence = 0.0;
        for point in 0..6 {
            evidence += model.predictive(&lambda).at(point)[0];
            model.components().add(point, 1.0, &mut lambda[1..]);
        }
        evidence
    };
    let step = 0.5;
    let logs: Vec<f64> = (0..160 * 160)
        .map(|i| {
            complete(
                step * f64::from(i % 160 - 80),
                step * f64::from(i / 160 - 80),
            )
        })
        .collect();
    let evidence = log_sum_exp_slice(&logs) + 2.0 * f64::ln(step);
    let found = bound(Covariance::Full, &data);
    assert!(
        found < evidence && found > evidence - 1.5,
        "{found} {evidence}"
    );
}

#[test]
fn predictive_densities_are_normalised() {
    // The integrals over real columns use the trapezoidal rule. They are over both values, or over one value if the
    // other is missing.
    let lambda_of = |covariance| {
        let model = Mixture::new(Gaussians::new(covariance, 2, plane(30)), 2, 1.0);
        model.start(&mut stream(7))
    };
    for covariance in SHAPES {
        let lambda = lambda_of(covariance);
        let step = 0.5;
        let axis: Vec<f64> = (-120..=120).map(|i| step * f64::from(i)).collect();
        let square = axis
            .iter()
            .flat_map(|&x| axis.iter().flat_map(move |&y| [x, y]));
        let total = |rows: Vec<f64>, cell: f64| {
            let model = Mixture::new(Gaussians::new(covariance, 2, rows), 2, 1.0);
            let logs: Vec<f64> = (0..model.points())
                .flat_map(|point| model.predictive(&lambda).at(point))
                .collect();
            log_sum_exp_slice(&logs).exp() * cell
        };
        let all = total(square.collect(), step * step);
        assert!((all - 1.0).abs() < 2e-3, "{covariance:?} {all}");
        let line = axis.iter().flat_map(|&x| [x, f64::NAN]);
        let one = total(line.collect(), step);
        assert!((one - 1.0).abs() < 2e-3, "{covariance:?} {one}");
    }
    let all: Vec<bool> = (0..8)
        .flat_map(|c| (0..3).map(move |i| c >> i & 1 == 1))
        .collect();
    let model = Mixture::new(Bernoullis::new(3, all), 2, 1.0);
    let lambda = model.start(&mut stream(8));
    let logs: Vec<f64> = (0..8)
        .flat_map(|point| model.predictive(&lambda).at(point))
        .collect();
    assert!(log_sum_exp_slice(&logs).abs() < 1e-12);
}
