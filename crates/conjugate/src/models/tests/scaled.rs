//! Tests of values with latent scales.

use jensen_math::special::lgamma;
use jensen_math::sum::ColumnMoments;

use super::*;

/// Draws numbers from Student's t distribution with two degrees of freedom around two centres.
fn heavy(n: usize) -> Vec<f64> {
    let mut s = stream(31);
    (0..n)
        .map(|i| {
            let centre = if i / 10 % 2 == 0 { -4.0 } else { 4.0 };
            let scale = 1.0 / crate::draws::log_gamma(1.0, &mut s).exp().sqrt();
            centre + scale * crate::draws::normal(&mut s)
        })
        .collect()
}

fn spread_counts(n: usize) -> Vec<f64> {
    let mut s = stream(32);
    (0..n)
        .map(|i| {
            let mean = if i / 10 % 2 == 0 { 2.0 } else { 15.0 };
            let rate = mean * crate::draws::log_gamma(2.0, &mut s).exp() / 2.0;
            (rate * (0.8 + 0.4 * s.uniform())).round()
        })
        .collect()
}

fn student(data: Vec<f64>, scale: f64) -> Scaled {
    let columns = ColumnMoments::of(1, &data);
    Scaled::student(data, &columns, GaussianPrior::default(), vec![scale.ln()])
}

fn negative_binomial(data: Vec<f64>) -> Scaled {
    let columns = ColumnMoments::of(1, &data);
    Scaled::negative_binomial(data, &columns)
}

/// Returns t for certain parameters, given as inner statistics, and a certain value of the grid.
fn certain(components: &Scaled, at: usize, inner: &[f64]) -> Vec<f64> {
    let mut t = vec![0.0; components.width()];
    for part in t.chunks_exact_mut(1 + inner.len()) {
        // The other values of the grid have a probability that does not matter.
        part[0] = 1e-200;
        part[1..]
            .iter_mut()
            .zip(inner)
            .for_each(|(t, x)| *t = 1e-200 * x);
    }
    let start = at * (1 + inner.len());
    t[start] = 1.0;
    t[start + 1..start + 1 + inner.len()].copy_from_slice(inner);
    t
}

#[test]
fn densities_with_certain_parameters_are_known_ones() {
    // The grid has 2 degrees of freedom at position 2.
    let (mu, tau, nu) = (0.5, 4.0f64, 2.0);
    let grid: Vec<f64> = (-40_000..=40_000).map(|i| 0.01 * f64::from(i)).collect();
    let components = student(grid.clone(), 1.0);
    let inner = [tau * mu, -0.5 * tau * mu * mu, -tau, tau.ln()];
    let t = certain(&components, 2, &inner);
    let pi = std::f64::consts::PI;
    for (at, x) in grid.iter().enumerate().step_by(1511) {
        let squares = tau * (x - mu).powi(2);
        let exact =
            lgamma(1.5) - lgamma(1.0) + 0.5 * (tau / (nu * pi)).ln() - 1.5 * (squares / nu).ln_1p();
        assert!((components.log_density(&t, at) - exact).abs() < 1e-10);
    }
    let total: f64 = (0..grid.len())
        .map(|at| 0.01 * components.log_density(&t, at).exp())
        .sum();
    assert!((total - 1.0).abs() < 1e-4, "{total}");
    // The grid has the shape 1 at position 6.
    let components = negative_binomial((0..600).map(f64::from).collect());
    let rate = 3.0f64;
    let t = certain(&components, 6, &[rate.ln(), -rate]);
    for at in [0, 1, 7, 40] {
        // With shape 1, the distribution is geometric.
        let exact = -(1.0 + rate).ln() + at as f64 * (rate / (1.0 + rate)).ln();
        assert!((components.log_density(&t, at) - exact).abs() < 1e-10);
    }
    let total: f64 = (0..600)
        .map(|at| components.log_density(&t, at).exp())
        .sum();
    assert!((total - 1.0).abs() < 1e-10, "{total}");
}

#[test]
fn energies_are_slopes_of_integrals_and_linear_in_the_statistics() {
    for components in [
        student(heavy(20), 3.0),
        negative_binomial(spread_counts(20)),
    ] {
        let model = Mixture::new(&components, 1, 1.0);
        let t = model.blocks().expectations(&model.start(&mut stream(7)));
        let t = model.component(&t, 0);
        for point in 0..20 {
            let at = |s: f64| components.complete(t, point, s, &mut Vec::new()).unwrap();
            let h = 1e-5;
            for s in [1.0, 0.6] {
                let slope = (at(s + h).log_integral - at(s - h).log_integral) / (2.0 * h);
                assert!((slope - at(s).energy).abs() < 1e-5 * slope.abs().max(1.0));
            }
            let mut statistics = Vec::new();
            let found = components.complete(t, point, 1.0, &mut statistics).unwrap();
            let linear: f64 = statistics.iter().zip(t).map(|(s, t)| s * t).sum();
            assert!((linear - found.log_integral).abs() < 1e-9 * linear.abs().max(1.0));
        }
    }
}

#[test]
fn the_bound_of_heavy_tails_and_spread_counts_never_falls() {
    fn rises<M: ConjugateModel>(model: &M) {
        for temper in [Temper::None, Temper::Schedule(vec![(0.0, 2.0)])] {
            let (records, _) = trace(model, &settings(temper, batch()));
            let bounds: Vec<f64> = records.iter().map(|r| r.elbo.unwrap()).collect();
            for pair in bounds.windows(2) {
                assert!(
                    pair[1] >= pair[0] - 1e-9 * pair[0].abs(),
                    "{} {pair:?}",
                    model.name()
                );
            }
        }
    }
    for components in [
        student(heavy(80), 1.0),
        negative_binomial(spread_counts(80)),
    ] {
        rises(&Mixture::new(&components, 3, 1.0));
        rises(&HiddenMarkov::new(&components, vec![0, 30, 80], 2, 1.0).unwrap());
    }
}

/// The evidence of a few values is an integral over their parameters for each value of the grid.
#[test]
fn bounds_of_few_values_are_little_below_the_evidence() {
    let counts = vec![0.0, 4.0, 1.0, 9.0, 2.0, 2.0];
    let mean = 3.0;
    let (a, b) = (0.5, 0.5 / mean);
    let step = 0.002;
    let mut logs = Vec::new();
    for power in -6..=14 {
        let r = 2f64.powf(0.5 * f64::from(power));
        for i in -7000..=3500 {
            let log_rate = step * f64::from(i);
            let rate = log_rate.exp();
            let prior = a * f64::ln(b) - lgamma(a) + a * log_rate - b * rate;
            let of = |x: &f64| {
                lgamma(x + r) - lgamma(r) - lgamma(x + 1.0)
                    + r * (r / (r + rate)).ln()
                    + x * (rate / (r + rate)).ln()
            };
            logs.push(prior + counts.iter().map(of).sum::<f64>() + step.ln() - f64::ln(21.0));
        }
    }
    let evidence = log_sum_exp_slice(&logs);
    let model = Mixture::new(negative_binomial(counts), 1, 1.0);
    let bound = ended(&model, Temper::None, batch(), 1).0;
    assert!(
        bound < evidence && bound > evidence - 0.5,
        "{bound} {evidence}"
    );
    let numbers = vec![0.3, -0.8, 7.5, 0.1, -0.2];
    let moments = ColumnMoments::of(1, &numbers)[0];
    let (m, kappa, a) = (moments.mean, 0.1, 1.0);
    let b = 0.1 * moments.variance();
    let mut logs = Vec::new();
    let (fine, coarse) = (0.05, 0.05);
    for power in 0..=14 {
        let nu = 2f64.powf(0.5 * f64::from(power));
        let constant = lgamma(0.5 * (nu + 1.0)) - lgamma(0.5 * nu);
        for i in -200..=160 {
            let log_tau = coarse * f64::from(i);
            let tau = log_tau.exp();
            let of_tau = a * f64::ln(b) - lgamma(a) + a * log_tau - b * tau;
            for j in -400..=400 {
                let mu = m + fine * f64::from(j);
                let two_pi = 2.0 * std::f64::consts::PI;
                let of_mu =
                    0.5 * (kappa * tau / two_pi).ln() - 0.5 * kappa * tau * (mu - m).powi(2);
                let of = |x: &f64| {
                    let squares = tau * (x - mu).powi(2);
                    constant + 0.5 * (tau / (nu * std::f64::consts::PI)).ln()
                        - 0.5 * (nu + 1.0) * (squares / nu).ln_1p()
                };
                let data: f64 = numbers.iter().map(of).sum();
                logs.push(of_tau + of_mu + data + f64::ln(fine * coarse / 15.0));
            }
        }
    }
    let evidence = log_sum_exp_slice(&logs);
    let model = Mixture::new(student(numbers, 1.0), 1, 1.0);
    let bound = ended(&model, Temper::None, batch(), 1).0;
    assert!(
        bound < evidence && bound > evidence - 1.0,
        "{bound} {evidence}"
    );
}

#[test]
fn chains_with_latent_values_sum_over_paths() {
    let components = student(heavy(12), 1.0);
    let model = HiddenMarkov::new(&components, vec![0, 4, 12], 2, 1.0).unwrap();
    let t = model.blocks().expectations(&model.start(&mut stream(7)));
    for tau in [1.0, 0.5] {
        let mut scratch = Default::default();
        let local = model.local(&t, 0, tau, &mut [], &mut scratch);
        let logs: Vec<f64> = (0..16usize)
            .map(|code| {
                let path: Vec<usize> = (0..4).map(|i| code >> i & 1).collect();
                let mut log = tau * t[path[0]];
                for (i, &z) in path.iter().enumerate() {
                    let own = model.state(&t, z);
                    let found = components.complete(own, i, tau, &mut Vec::new()).unwrap();
                    log += found.log_integral;
                    if i > 0 {
                        log += tau * t[2 + 2 * path[i - 1] + z];
                    }
                }
                log
            })
            .collect();
        let exact = log_sum_exp_slice(&logs);
        let found = tau * local.energy + local.entropy;
        assert!(
            (found - exact).abs() < 1e-10 * exact.abs(),
            "{found} {exact}"
        );
    }
}
