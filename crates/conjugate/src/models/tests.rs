//! Tests that compare models with enumeration and policies with each other, and that check the guarantee of batch
//! ascent.

use jensen_math::rng::{Purpose, Stream};
use jensen_math::special::log_sum_exp_slice;
use jensen_run::{Algorithm, Archive, Budget, Control, Record, Silent, Snapshot};

use super::*;
use crate::driver::{Driver, DriverSettings, Mode};
use crate::engine::Engine;
use crate::fit::fit;
use crate::model::{ConjugateModel, twins};
use crate::pointwise::Pointwise;
use crate::temper::{GlobalTempering, Length, LocalTempering, Temper};

mod cooling;
mod kinds;
mod labels;
mod missing;
mod process;
mod scaled;
mod shapes;

use kinds::kinds;

const SHAPES: [Covariance; 4] = [
    Covariance::Full,
    Covariance::Tied,
    Covariance::Diagonal,
    Covariance::Spherical,
];

fn stream(lane: u64) -> Stream {
    Stream::new(9, Purpose::new("test of models"), 0, lane)
}

fn plane(n: usize) -> Vec<f64> {
    let mut s = stream(0);
    (0..n)
        .flat_map(|i| {
            let centre = if i % 3 == 0 { 3.0 } else { -1.0 };
            [
                centre + crate::draws::normal(&mut s),
                0.5 * centre + crate::draws::normal(&mut s),
            ]
        })
        .collect()
}

fn bits(n: usize, dim: usize) -> Vec<bool> {
    let mut s = stream(1);
    (0..n * dim)
        .map(|i| s.uniform() < if (i / dim) % 2 == i % 2 { 0.8 } else { 0.3 })
        .collect()
}

fn counts(n: usize, dim: usize) -> Vec<f64> {
    let mut s = stream(2);
    (0..n * dim)
        .map(|i| (s.uniform() * if (i / dim) % 2 == i % 2 { 5.0 } else { 1.6 }).floor())
        .collect()
}

fn factors(n: usize) -> FactorialMixture {
    let mut s = stream(3);
    let shapes = [
        [1.0, 1.0, 0.0, 0.0],
        [0.0, 0.8, 0.8, 0.0],
        [0.0, 0.0, 0.0, 0.9],
    ];
    let mut data = Vec::new();
    for _ in 0..n {
        let mut x = [0.0; 4];
        for shape in shapes {
            if s.uniform() < 0.4 {
                x.iter_mut().zip(shape).for_each(|(x, m)| *x += m);
            }
        }
        data.extend(x.map(|x| x + 0.3 * crate::draws::normal(&mut s)));
    }
    let settings = FactorialSettings {
        factors: 3,
        noise_variance: 0.1,
        factor_variance: 0.5,
        activation: 0.4,
    };
    FactorialMixture::new(settings, 4, data).unwrap()
}

/// Draws pictures of four by four pixels that show some of eight lines. Each line is active in a fifth of the pictures.
fn lines(n: usize) -> FactorialMixture {
    let mut s = stream(4);
    let mut data = Vec::new();
    for _ in 0..n {
        let on: Vec<f64> = (0..8)
            .map(|_| f64::from(u8::from(s.uniform() < 0.2)))
            .collect();
        data.extend(
            (0..16).map(|k| on[k / 4] + on[4 + k % 4] + 0.3 * crate::draws::normal(&mut s)),
        );
    }
    let settings = FactorialSettings {
        factors: 8,
        noise_variance: 0.09,
        factor_variance: 0.5,
        activation: 0.2,
    };
    FactorialMixture::new(settings, 16, data).unwrap()
}

fn chain() -> HiddenMarkov<Gaussians> {
    let gaussians = Gaussians::new(Covariance::Diagonal, 2, plane(40));
    HiddenMarkov::new(gaussians, vec![0, 5, 12, 12, 40], 3, 1.0).unwrap()
}

/// At the optimum of an exact local step, τ energy + entropy = log Σ_z exp(τ log p(x, z)), a sum over all assignments.
fn exact_locally<M: ConjugateModel>(model: &M, point: usize, joint: impl Fn(&[f64]) -> Vec<f64>) {
    let lambda = model.start(&mut stream(7));
    let expected = model.blocks().expectations(&lambda);
    for tau in [1.0, 0.6, 0.15] {
        let mut memory = vec![0.5; model.memory()];
        let mut scratch = M::Scratch::default();
        let local = model.local(&expected, point, tau, &mut memory, &mut scratch);
        let logs: Vec<f64> = joint(&expected).iter().map(|x| tau * x).collect();
        let exact = log_sum_exp_slice(&logs);
        let found = tau * local.energy + local.entropy;
        assert!(
            (found - exact).abs() < 1e-10 * exact.abs().max(1.0),
            "{} {tau}: {found} {exact}",
            model.name()
        );
        // The energy is the mean over assignments.
        let energy: f64 = joint(&expected)
            .iter()
            .zip(&logs)
            .map(|(x, l)| x * (l - exact).exp())
            .sum();
        assert!((local.energy - energy).abs() < 1e-9 * energy.abs().max(1.0));
    }
}

#[test]
fn local_steps_equal_enumeration() {
    for covariance in SHAPES {
        let model = Mixture::new(Gaussians::new(covariance, 2, plane(12)), 3, 1.0);
        exact_locally(&model, 4, |t| {
            (0..3)
                .map(|k| t[k] + model.components().log_density(model.component(t, k), 4))
                .collect()
        });
    }
    let model = Mixture::new(Multinomials::new(3, 0.5, counts(9, 3)), 2, 1.0);
    exact_locally(&model, 2, |t| {
        (0..2)
            .map(|k| t[k] + model.components().log_density(model.component(t, k), 2))
            .collect()
    });
    let model = chain();
    exact_locally(&model, 0, |t| {
        let k = 3;
        (0..k_pow(k, 5))
            .map(|code| {
                let path: Vec<usize> = (0..5).map(|i| code / k_pow(k, i) % k).collect();
                let mut log = t[path[0]];
                for (i, &z) in path.iter().enumerate() {
                    log += model.emissions().log_density(model.state(t, z), i);
                    if i > 0 {
                        log += t[k + path[i - 1] * k + z];
                    }
                }
                log
            })
            .collect()
    });
}

/// The energy of a point is linear in its statistics.
fn statistics_give_the_energy<M: ConjugateModel>(model: &M, constant: impl Fn(usize) -> f64) {
    let t = model.blocks().expectations(&model.start(&mut stream(7)));
    let mut scratch = M::Scratch::default();
    for point in 0..model.points() {
        if model.size(point) == 0.0 {
            continue;
        }
        let local = model.local(&t, point, 0.7, &mut [], &mut scratch);
        let mut statistics = vec![0.0; t.len()];
        model.add_statistics(point, 1.0, &scratch, &mut statistics);
        let dot: f64 = statistics.iter().zip(&t).map(|(a, b)| a * b).sum();
        let found = dot + constant(point);
        let error = (found - local.energy).abs();
        assert!(
            error < 1e-10 * local.energy.abs().max(1.0),
            "{} {point}",
            model.name()
        );
    }
}

#[test]
fn energies_are_linear_in_the_statistics() {
    let plane_constant = -(2.0 * std::f64::consts::PI).ln();
    for covariance in SHAPES {
        let model = Mixture::new(Gaussians::new(covariance, 2, plane(12)), 3, 1.0);
        statistics_give_the_energy(&model, |_| plane_constant);
    }
    let model = Mixture::new(Bernoullis::new(5, bits(10, 5)), 3, 1.0);
    statistics_give_the_energy(&model, |_| 0.0);
    let model = Mixture::new(Multinomials::new(4, 0.5, counts(10, 4)), 3, 1.0);
    statistics_give_the_energy(&model, |_| 0.0);
    let model = chain();
    statistics_give_the_energy(&model, |point| plane_constant * model.size(point));
}

fn k_pow(k: usize, n: usize) -> usize {
    k.pow(n as u32)
}

#[test]
fn the_factorial_local_step_is_a_stationary_point_below_the_exact_sum() {
    let model = factors(6);
    let lambda = model.start(&mut stream(7));
    let t = model.blocks().expectations(&lambda);
    let (means, half) = t.split_at(12);
    for tau in [1.0, 0.4] {
        let mut memory = vec![0.5; 3];
        let mut v = Vec::new();
        let local = model.local(&t, 1, tau, &mut memory, &mut v);
        assert!(local.converged);
        // E log p(x, z) for every z by its definition, from E[M] and E[MMᵀ].
        let x = &model_row(&model, 1);
        let energy_of = |z: &[f64]| {
            let mut distance: f64 = x.iter().map(|x| x * x).sum();
            let mut log = 0.0;
            for i in 0..3 {
                log += if z[i] > 0.5 { 0.4f64.ln() } else { 0.6f64.ln() };
                let dot: f64 = x
                    .iter()
                    .zip(&means[4 * i..4 * i + 4])
                    .map(|(a, b)| a * b)
                    .sum();
                distance -= 2.0 * z[i] * dot;
                for j in 0..3 {
                    distance += z[i] * z[j] * -2.0 * half[3 * i + j];
                }
            }
            log - 0.5 * distance / 0.1 - 2.0 * (2.0 * std::f64::consts::PI * 0.1).ln()
        };
        let states: Vec<[f64; 3]> = (0..8)
            .map(|c| [0, 1, 2].map(|i| f64::from(c >> i & 1)))
            .collect();
        let value = |v: &[f64]| {
            states
                .iter()
                .map(|z| {
                    let q: f64 = z
                        .iter()
                        .zip(v)
                        .map(|(&z, &v)| if z > 0.5 { v } else { 1.0 - v })
                        .product();
                    if q > 0.0 {
                        q * (tau * energy_of(z) - q.ln())
                    } else {
                        0.0
                    }
                })
                .sum::<f64>()
        };
        let found = tau * local.energy + local.entropy;
        assert!((found - value(&v)).abs() < 1e-9, "{found} {}", value(&v));
        let all: Vec<f64> = states.iter().map(|z| tau * energy_of(z)).collect();
        assert!(found <= log_sum_exp_slice(&all) + 1e-12);
        for i in 0..3 {
            for step in [-1e-3, 1e-3] {
                let mut moved = v.clone();
                moved[i] = (moved[i] + step).clamp(0.0, 1.0);
                assert!(value(&moved) <= found + 1e-9);
            }
        }
    }
}

fn model_row(model: &FactorialMixture, point: usize) -> Vec<f64> {
    // The statistics of a point with every factor active contain the point itself.
    let mut out = vec![0.0; model.blocks().len()];
    model.add_statistics(point, 0.1, &vec![1.0; 3], &mut out);
    out[..4].to_vec()
}

#[test]
fn normalisers_equal_quadrature_and_enumeration() {
    // One real dimension is integrated by the trapezoidal rule over a wide grid.
    let data: Vec<f64> = plane(10).into_iter().step_by(2).collect();
    for covariance in SHAPES {
        let model = Mixture::new(Gaussians::new(covariance, 1, data.clone()), 2, 1.0);
        let t = model
            .blocks()
            .draw(&model.start(&mut stream(5)), &mut stream(6));
        let grid: Vec<f64> = (0..40_001).map(|i| -200.0 + 0.01 * f64::from(i)).collect();
        let dense = Mixture::new(model.components().with_data(grid), 2, 1.0);
        for s in [1.0, 0.5, 0.1] {
            let total: f64 = (0..dense.points())
                .flat_map(|i| (0..2).map(move |k| (i, k)))
                .map(|(i, k)| {
                    let log = t[k] + dense.components().log_density(dense.component(&t, k), i);
                    (s * log).exp() * 0.01
                })
                .sum();
            let found = model.log_normaliser(&t, 1.0, s);
            assert!(
                (found - total.ln()).abs() < 1e-6,
                "{s}: {found} {}",
                total.ln()
            );
        }
    }
    // The sum is over all binary vectors.
    let all: Vec<bool> = (0..8)
        .flat_map(|c| (0..3).map(move |i| c >> i & 1 == 1))
        .collect();
    let model = Mixture::new(Bernoullis::new(3, all), 2, 1.0);
    let t = model.blocks().draw(model.blocks().prior(), &mut stream(8));
    for s in [1.0, 0.3] {
        let logs: Vec<f64> = (0..8)
            .flat_map(|i| (0..2).map(move |k| (i, k)))
            .map(|(i, k)| s * (t[k] + model.components().log_density(model.component(&t, k), i)))
            .collect();
        assert!((model.log_normaliser(&t, 1.0, s) - log_sum_exp_slice(&logs)).abs() < 1e-12);
        if s == 1.0 {
            assert!(log_sum_exp_slice(&logs).abs() < 1e-12);
        }
    }
    // The sum is over all sequences of three draws from three categories.
    let model = Mixture::new(Multinomials::new(3, 0.7, vec![1.0, 2.0, 0.0]), 2, 1.0);
    let t = model.blocks().draw(model.blocks().prior(), &mut stream(8));
    for s in [1.0, 0.3] {
        let mut logs = Vec::new();
        for k in 0..2 {
            let beta = model.component(&t, k);
            for code in 0..27usize {
                let words = [code % 3, code / 3 % 3, code / 9];
                logs.push(s * (t[k] + words.iter().map(|&w| beta[w]).sum::<f64>()));
            }
        }
        assert!((model.log_normaliser(&t, 3.0, s) - log_sum_exp_slice(&logs)).abs() < 1e-12);
    }
    // For chains, the sum is over paths, with each step's emission integrated.
    let model = chain();
    let t = model
        .blocks()
        .draw(&model.start(&mut stream(5)), &mut stream(6));
    let s = 0.4;
    let logs: Vec<f64> = (0..27usize)
        .map(|code| {
            let path = [code % 3, code / 3 % 3, code / 9];
            let mut log =
                s * (t[path[0]] + t[3 + path[0] * 3 + path[1]] + t[3 + path[1] * 3 + path[2]]);
            log += path
                .iter()
                .map(|&z| model.emissions().log_power(model.state(&t, z), 1.0, s))
                .sum::<f64>();
            log
        })
        .collect();
    assert!((model.log_normaliser(&t, 3.0, s) - log_sum_exp_slice(&logs)).abs() < 1e-12);
    assert!(model.log_normaliser(&t, 7.0, 1.0).abs() < 1e-12);
    assert!(factors(2).log_normaliser(&[], 1.0, 1.0).abs() < 1e-12);
}

fn settings(temper: Temper, mode: Mode) -> DriverSettings {
    DriverSettings {
        mode,
        temper,
        seed: 3,
        scores_per_pass: 0.0,
    }
}

fn batch() -> Mode {
    Mode::Batch {
        tolerance: 1e-9,
        max_iterations: 60,
    }
}

fn stochastic() -> Mode {
    Mode::Stochastic {
        batch: 7,
        tau: 1.0,
        kappa: 0.7,
        passes: 3.0,
        population: None,
        steps_before: 0,
    }
}

fn trace<M: ConjugateModel>(model: &M, settings: &DriverSettings) -> (Vec<Record>, Vec<f64>) {
    let mut records: Vec<Record> = Vec::new();
    let clock = || 0.0;
    let mut control = Control::new(Budget::iterations(u64::MAX), &clock, &mut records);
    let outcome = fit(model, settings, "", &mut control).unwrap();
    (records, outcome.output.unwrap().lambda)
}

fn monotone<M: ConjugateModel>(model: &M) {
    let fixed = |t: f64| Temper::Schedule(vec![(0.0, t)]);
    let grid = GlobalTempering {
        temperatures: 20,
        hottest: 5.0,
        ..GlobalTempering::default()
    };
    for temper in [Temper::None, fixed(2.0), fixed(8.0), Temper::Global(grid)] {
        let (records, _) = trace(model, &settings(temper.clone(), batch()));
        let bounds: Vec<f64> = records.iter().map(|r| r.elbo.unwrap()).collect();
        assert!(bounds.len() > 3);
        for pair in bounds.windows(2) {
            let slack = 1e-9 * pair[0].abs();
            assert!(
                pair[1] >= pair[0] - slack,
                "{} {}: {pair:?}",
                model.name(),
                temper.name()
            );
        }
    }
}

#[test]
fn batch_ascent_never_falls() {
    for covariance in SHAPES {
        let gaussians = Gaussians::new(covariance, 2, plane(60));
        monotone(&Mixture::new(gaussians, 4, 1.0));
    }
    monotone(&Mixture::new(Bernoullis::new(5, bits(50, 5)), 3, 1.0));
    monotone(&Mixture::new(
        Multinomials::new(4, 0.5, counts(40, 4)),
        3,
        1.0,
    ));
    monotone(&chain());
    monotone(&factors(80));
    monotone(&Mixture::new(kinds(60), 3, 1.0));
}

fn policies_agree<M: ConjugateModel>(model: &M) {
    let same = [
        Temper::None,
        Temper::Anneal {
            passes: 2.0,
            from: 1.0,
        },
        Temper::Schedule(vec![(0.0, 1.0), (2.0, 1.0)]),
    ];
    for mode in [batch(), stochastic()] {
        let fits: Vec<Vec<u64>> = same
            .iter()
            .map(|temper| {
                let (_, lambda) = trace(model, &settings(temper.clone(), mode.clone()));
                lambda.iter().map(|x| x.to_bits()).collect()
            })
            .collect();
        assert!(fits.iter().all(|f| *f == fits[0]), "{}", model.name());
    }
    // Every policy must give a fit of finite numbers.
    for temper in [
        Temper::anneal(1.0),
        Temper::Global(GlobalTempering::default()),
        Temper::Local(LocalTempering::default()),
        "global=2".parse().unwrap(),
        "local=2".parse().unwrap(),
    ] {
        let cools = matches!(
            temper,
            Temper::Global(GlobalTempering {
                cooling: Some(_),
                ..
            }) | Temper::Local(LocalTempering {
                cooling: Some(_),
                ..
            })
        );
        for mode in [batch(), stochastic()] {
            let (records, lambda) = trace(model, &settings(temper.clone(), mode));
            assert!(
                lambda.iter().all(|x| x.is_finite()),
                "{} {}",
                model.name(),
                temper.name()
            );
            let last = records.last().unwrap().fields["temperature"]
                .as_f64()
                .unwrap();
            assert!(
                (1.0..=1e4).contains(&last) && !(cools && last != 1.0),
                "{} {}: {last}",
                model.name(),
                temper.name()
            );
        }
    }
}

#[test]
fn policies_at_temperature_one_are_plain_inference_to_the_bit() {
    policies_agree(&Mixture::new(
        Gaussians::new(Covariance::Full, 2, plane(60)),
        3,
        1.0,
    ));
    policies_agree(&Mixture::new(Bernoullis::new(5, bits(50, 5)), 3, 1.0));
    policies_agree(&Mixture::new(
        Multinomials::new(4, 0.5, counts(40, 4)),
        3,
        1.0,
    ));
    policies_agree(&chain());
    policies_agree(&factors(80));
    policies_agree(&Mixture::new(kinds(60), 3, 1.0));
}

#[test]
fn runs_are_prefixes_and_resume_to_the_same_bits() {
    let model = factors(50);
    for temper in [
        Temper::anneal(1.0),
        Temper::Global(GlobalTempering::default()),
        Temper::Local(LocalTempering::default()),
    ] {
        let settings = settings(temper, stochastic());
        let mut driver = Driver::new(Pointwise::new(&model), settings.clone());
        let mut state = driver.init().unwrap();
        let mut saved: Vec<Archive> = Vec::new();
        for iteration in 1..=20 {
            driver.step(&mut state, iteration);
            saved.push(state.save());
        }
        for stop in [1usize, 7, 13] {
            // A fresh driver, as after a restart.
            let mut driver = Driver::new(Pointwise::new(&model), settings.clone());
            let mut state = Snapshot::restore(&saved[stop - 1]).unwrap();
            for iteration in stop as u64 + 1..=20 {
                driver.step(&mut state, iteration);
            }
            assert_eq!(state.save(), saved[19]);
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let model = Mixture::new(Gaussians::new(Covariance::Full, 2, plane(400)), 3, 1.0);
    let settings = settings(Temper::None, batch());
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| trace(&model, &settings).1)
    };
    let one = on(1);
    for threads in [2, 3, 8] {
        assert_eq!(one, on(threads));
    }
}

#[test]
fn log_c_matches_a_one_dimensional_integral() {
    // For one binary variable, one component and N points, C(s) = ∫ Beta(p; ½, ½) (p^s + (1−p)^s)^N dp, with p = sin²φ.
    let n = 6;
    let model = Mixture::new(Bernoullis::new(1, vec![true; n]), 1, 1.0);
    let engine = Pointwise::new(&model);
    let partition = engine.log_partition(&[1.0, 0.5, 0.2], Some(20_000), 1);
    for (m, s) in [1.0, 0.5, 0.2].into_iter().enumerate() {
        let steps = 20_000;
        let integral: f64 = (0..steps)
            .map(|i| {
                let phi = std::f64::consts::FRAC_PI_2 * (f64::from(i) + 0.5) / f64::from(steps);
                let p = phi.sin().powi(2);
                (p.powf(s) + (1.0 - p).powf(s)).powi(n as i32) / f64::from(steps)
            })
            .sum();
        let exact = integral.ln();
        assert!(
            (partition.log_c[m] - exact).abs() < 0.02,
            "{s}: {} {exact}",
            partition.log_c[m]
        );
        assert!(partition.lower[m] <= exact + 1e-12);
    }
}

#[test]
fn stochastic_fits_find_the_clusters() {
    let model = Mixture::new(Gaussians::new(Covariance::Diagonal, 2, plane(600)), 2, 1.0);
    let mode = Mode::Stochastic {
        batch: 50,
        tau: 1.0,
        kappa: 0.7,
        passes: 10.0,
        population: None,
        steps_before: 0,
    };
    let mut control_observer = Silent;
    let clock = || 0.0;
    let mut control = Control::new(Budget::iterations(u64::MAX), &clock, &mut control_observer);
    let outcome = fit(&model, &settings(Temper::None, mode), "", &mut control).unwrap();
    let lambda = outcome.output.unwrap().lambda;
    let mut centres: Vec<f64> = (0..2)
        .map(|k| model.components().mean(model.component(&lambda, k))[0])
        .collect();
    centres.sort_by(f64::total_cmp);
    assert!(
        (centres[0] + 1.0).abs() < 0.3 && (centres[1] - 3.0).abs() < 0.3,
        "{centres:?}"
    );
}

fn ended<M: ConjugateModel>(model: &M, temper: Temper, mode: Mode, seed: u64) -> (f64, usize) {
    let settings = DriverSettings {
        seed,
        ..settings(temper, mode)
    };
    let mut silent = Silent;
    let clock = || 0.0;
    let mut control = Control::new(Budget::iterations(u64::MAX), &clock, &mut silent);
    let found = fit(model, &settings, "", &mut control)
        .unwrap()
        .output
        .unwrap();
    assert_eq!(found.temperature, 1.0);
    (found.elbo, found.twins.len())
}
