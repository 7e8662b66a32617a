//! Tests that compare refinement with exact answers, and cases in which the refinement must refuse its draws.

use std::f64::consts::{PI, TAU};
use std::sync::Arc;

use jensen_blackbox::{
    Approximation, Estimate, FamilyKind, NoiseSource, Policy, Refine, RefineSettings, Refined,
    Space, Summary,
};
use jensen_density::{Lanes, LanesMut, LogDensity, Pattern, Scale};
use jensen_math::simd::Simd;
use jensen_math::special::{digamma, lbeta, lgamma, trigamma};
use jensen_run::{Budget, Checkpoint, Control, Identity, Outcome, Record, run};
use jensen_testkit::{CorrelatedGaussian, Mixture, Real, Scalar, ScalarModel, ticking};

struct Plain<F> {
    dim: usize,
    log_density: F,
}

impl<F: Fn(&[f64], &mut [f64]) -> f64 + Sync> LogDensity for Plain<F> {
    type Workspace = ();

    fn dim(&self) -> usize {
        self.dim
    }
    fn workspace(&self, _lanes: usize) {}
    fn value(&self, _: &mut (), z: Lanes<'_>, out: &mut [f64]) {
        let mut grad = vec![0.0; self.dim * z.lanes()];
        self.value_grad(
            &mut (),
            z,
            out,
            LanesMut::new(&mut grad, self.dim, z.lanes()),
        );
    }
    fn value_grad(&self, _: &mut (), z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
        let (mut point, mut slope) = (vec![0.0; self.dim], vec![0.0; self.dim]);
        for (l, value) in out.iter_mut().enumerate() {
            z.copy_lane(l, &mut point);
            *value = (self.log_density)(&point, &mut slope);
            for (i, s) in slope.iter().enumerate() {
                grad.row_mut(i)[l] = *s;
            }
        }
    }
}

struct Steady<D>(D);

impl<D: LogDensity> LogDensity for Steady<D> {
    type Workspace = D::Workspace;

    fn dim(&self) -> usize {
        self.0.dim()
    }
    fn workspace(&self, lanes: usize) -> D::Workspace {
        self.0.workspace(lanes)
    }
    fn value(&self, ws: &mut D::Workspace, z: Lanes<'_>, out: &mut [f64]) {
        self.0.value(ws, z, out);
    }
    fn value_grad(&self, ws: &mut D::Workspace, z: Lanes<'_>, out: &mut [f64], grad: LanesMut<'_>) {
        self.0.value_grad(ws, z, out, grad);
    }
    fn work(&self) -> Option<u64> {
        Some(1000)
    }
}

const LIMIT: u64 = 12_000_000;

fn identity() -> Identity {
    Identity {
        algorithm: "refine".into(),
        settings: serde_json::to_value(RefineSettings::default()).unwrap(),
        seed: 0,
        model_hash: String::new(),
        data_hash: String::new(),
        simd: Simd::detect().name().into(),
    }
}

fn mean_field(mean: &[f64], sd: &[f64]) -> Approximation {
    let log_sd = sd.iter().map(|s| s.ln());
    let omega = mean.iter().copied().chain(log_sd).collect();
    Approximation::new(FamilyKind::MeanField, mean.len(), omega).unwrap()
}

struct Run {
    outcome: Outcome<Refined>,
    records: Vec<Record>,
    checkpoints: Vec<Vec<u8>>,
}

impl Run {
    fn refined(&self) -> &Refined {
        self.outcome.output.as_ref().unwrap()
    }
}

fn controlled(
    density: &impl LogDensity,
    approximation: &Approximation,
    seed: u64,
    budget: u64,
    resume: Option<Checkpoint>,
) -> Run {
    controlled_of(density, &[], approximation, seed, budget, resume)
}

fn controlled_of(
    density: &impl LogDensity,
    scales: &[Scale],
    approximation: &Approximation,
    seed: u64,
    budget: u64,
    resume: Option<Checkpoint>,
) -> Run {
    let source = NoiseSource::new(seed, Simd::detect());
    // Refining a funnel takes this many gradients.
    let policy = Policy {
        max_gradients: LIMIT,
        ..Policy::default()
    };
    let mut refine = Refine::new(density, approximation, source, RefineSettings::default())
        .under(policy)
        .of_scales(scales);
    let clock = ticking(0.001);
    let mut records: Vec<Record> = Vec::new();
    let mut checkpoints: Vec<Vec<u8>> = Vec::new();
    let mut control = Control::new(Budget::iterations(budget), &clock, &mut records);
    control.store = Some(&mut checkpoints);
    control.checkpoint_seconds = 0.0;
    control.resume = resume;
    let outcome = run(&mut refine, &identity(), &mut control).unwrap();
    Run {
        outcome,
        records,
        checkpoints,
    }
}

fn refine(density: &impl LogDensity, approximation: &Approximation, seed: u64) -> Refined {
    let run = controlled(density, approximation, seed, 1_000_000, None);
    run.outcome.output.unwrap()
}

fn column(refined: &Refined, i: usize) -> &[f64] {
    &refined.draws.z[i * refined.draws.count..(i + 1) * refined.draws.count]
}

fn check(refined: &Refined, i: usize, mean: f64, sd: f64) {
    assert!(refined.mixed(), "{:?}", refined.reasons);
    let mixing = refined.ensemble.judge_with_spread(column(refined, i));
    let found = Summary::of(column(refined, i));
    assert!(
        (found.mean - mean).abs() < 4.5 * mixing.mcse(),
        "{} for {mean}, {mixing:?}",
        found.mean
    );
    // This is the error of the spread for tails up to those of an exponential distribution.
    let error = 4.5 * sd * (2.0 / mixing.ess).sqrt();
    assert!(
        (found.sd - sd).abs() < error,
        "{} for {sd}, {mixing:?}",
        found.sd
    );
}

fn within(estimate: Estimate, truth: f64, errors: f64) {
    let error = estimate.mean - truth;
    assert!(
        error.abs() < errors * estimate.standard_error,
        "{estimate:?} for {truth}"
    );
}

/// A correlated normal has a known log evidence and a known divergence from its mean-field approximation. On 20 seeds,
/// the errors of both are within three standard errors, and the standard errors have the right size.
#[test]
fn evidences_are_calibrated() {
    let density = CorrelatedGaussian::exchangeable(&[1.0, 100.0, 0.01, 3.0, 20.0, 1.0], 0.6);
    let approximation = mean_field(density.mean(), &density.mean_field_sd());
    let elbo = Estimate {
        mean: density.mean_field_elbo(),
        standard_error: 0.0,
    };
    let mut squares = 0.0;
    for seed in 0..20 {
        let refined = refine(&density, &approximation, seed);
        within(refined.log_evidence, 0.0, 3.5);
        within(refined.divergence(elbo), -density.mean_field_elbo(), 3.5);
        assert!(refined.log_evidence.standard_error < 0.2);
        squares += (refined.log_evidence.mean / refined.log_evidence.standard_error).powi(2);
        check(&refined, 1, 100.0, 100.0);
        check(&refined, 2, 0.02, 0.01);
    }
    let spread = (squares / 20.0).sqrt();
    assert!((0.6..1.6).contains(&spread), "{spread}");
}

#[test]
fn shapes_of_one_dimension() {
    for shape in [0.3, 1.0, 3.0] {
        let gamma = Plain {
            dim: 1,
            log_density: |z: &[f64], slope: &mut [f64]| {
                slope[0] = shape - z[0].exp();
                shape * z[0] - z[0].exp()
            },
        };
        let (mean, sd) = (digamma(shape), trigamma(shape).sqrt());
        let refined = refine(&gamma, &mean_field(&[mean], &[0.6 * sd]), 1);
        within(refined.log_evidence, lgamma(shape), 4.0);
        check(&refined, 0, mean, sd);
    }
    for (a, b) in [(0.5, 0.5), (6.0, 6.0), (1.0, 40.0)] {
        let beta = Plain {
            dim: 1,
            log_density: |z: &[f64], slope: &mut [f64]| {
                let p = 1.0 / (1.0 + (-z[0]).exp());
                slope[0] = a * (1.0 - p) - b * p;
                -a * (-z[0]).exp().ln_1p() - b * z[0].exp().ln_1p()
            },
        };
        let mean = digamma(a) - digamma(b);
        let sd = (trigamma(a) + trigamma(b)).sqrt();
        let refined = refine(&beta, &mean_field(&[mean], &[0.7 * sd]), 1);
        within(refined.log_evidence, lbeta(a, b), 4.0);
        check(&refined, 0, mean, sd);
    }
}

/// Student's t distribution with four degrees of freedom has a variance of 2 and no fourth moment.
#[test]
fn tails_heavier_than_the_approximation() {
    let t = Plain {
        dim: 2,
        log_density: |z: &[f64], slope: &mut [f64]| {
            let mut sum = 0.0;
            for (z, s) in z.iter().zip(slope) {
                *s = -5.0 * z / (4.0 + z * z);
                sum += -2.5 * (z * z / 4.0).ln_1p() + (0.375f64).ln();
            }
            sum
        },
    };
    let refined = refine(&t, &mean_field(&[0.0; 2], &[1.1; 2]), 3);
    within(refined.log_evidence, 0.0, 4.0);
    let found = Summary::of(column(&refined, 0));
    assert!(
        found.mean.abs() < 0.1 && (found.q95 - 2.132).abs() < 0.12,
        "{found:?}"
    );
}

#[test]
fn hard_edges_and_undefined_points() {
    let half = Plain {
        dim: 2,
        log_density: |z: &[f64], slope: &mut [f64]| {
            slope.copy_from_slice(&[-z[0], -z[1]]);
            match z[0] {
                x if x < -1.5 => f64::NAN,
                x if x < 0.0 => f64::NEG_INFINITY,
                x => -0.5 * (x * x + z[1] * z[1]),
            }
        },
    };
    let refined = refine(&half, &mean_field(&[0.7, 0.1], &[0.7, 1.1]), 2);
    assert!(
        refined.mixed(),
        "{:?} {:?}",
        refined.reasons,
        refined.stationary_phases
    );
    within(refined.log_evidence, (0.5 * TAU).ln(), 4.0);
    check(&refined, 0, (2.0 / PI).sqrt(), (1.0 - 2.0 / PI).sqrt());
    check(&refined, 1, 0.0, 1.0);
}

/// The coordinate y follows b x² to within a half, so the posterior is a curved ridge with long, thin arms. Chains that
/// all started in the middle agree long before they reach the ends; their drift reveals this. Each approximation is the
/// best member of its family.
#[test]
fn arms_that_no_chain_has_been_to_are_not_forgotten() {
    for (apply, sd) in [(2.0, 0.34), (5.0, 0.22)] {
        let banana = Plain {
            dim: 2,
            log_density: move |z: &[f64], slope: &mut [f64]| {
                let off = z[1] - apply * z[0] * z[0];
                slope[0] = -z[0] + 8.0 * apply * z[0] * off;
                slope[1] = -4.0 * off;
                -0.5 * z[0] * z[0] - 2.0 * off * off
            },
        };
        for seed in 0..8 {
            let middle = mean_field(&[0.0, apply * sd * sd], &[sd, 0.5]);
            let refined = refine(&banana, &middle, seed);
            assert!(refined.mixed(), "{apply} {seed}: {:?}", refined.reasons);
            let x = Summary::of(column(&refined, 0)).sd;
            let y = Summary::of(column(&refined, 1)).sd / (2.0 * apply * apply + 0.25).sqrt();
            assert!((x - 1.0).abs() < 0.1, "{apply} {seed}: {x}");
            // The square of a normal variable has an excess kurtosis of 12. The limit is three standard errors of its
            // standard deviation with 512 draws.
            assert!((y - 1.0).abs() < 0.25, "{apply} {seed}: {y}");
        }
    }
}

const SEEN: [f64; 6] = [-0.9, 0.045, 1.53, -1.215, 2.97, -2.34];
const SHAPE: f64 = 0.001;

/// The effects are observed with unit noise, and the logarithm of their precision precedes them.
fn effects() -> impl LogDensity {
    Steady(Plain {
        dim: 7,
        log_density: |z: &[f64], slope: &mut [f64]| {
            let (log, precision) = (z[0], z[0].exp());
            let mut value = SHAPE * log - SHAPE * precision + 3.0 * log;
            slope[0] = SHAPE - SHAPE * precision + 3.0;
            for (i, y) in SEEN.into_iter().enumerate() {
                let (effect, off) = (z[i + 1], y - z[i + 1]);
                value -= 0.5 * (off * off + precision * effect * effect);
                slope[0] -= 0.5 * precision * effect * effect;
                slope[i + 1] = off - precision * effect;
            }
            value
        },
    })
}

fn beside_a_tail_mode() -> (Approximation, [Scale; 7]) {
    let mut scales = [Scale::Identity; 7];
    scales[0] = Scale::Log;
    let points = [-0.8, -0.6, 0.0, 1.0, -0.8, 2.0, -1.6];
    (mean_field(&points, &[0.8; 7]), scales)
}

/// The precision of the effects has the prior gamma(0.001, 0.001). If the effects are almost equal, the precision can
/// be up to a thousand. This region is a separated tail mode with a fifteenth of the mass. Chains agree before this
/// mode has its share, so the refinement moves some chains there. Means and standard deviations agree with quadrature,
/// and a resumed run is bitwise identical.
#[test]
fn tail_modes_get_their_share() {
    let effects = effects();
    // The effects are integrated out. The steps are so small that sums approximate the integrals.
    let square: f64 = SEEN.iter().map(|y| y * y).sum();
    let weight = |log: f64| {
        let variance = 1.0 + (-log).exp();
        let log_p = -3.0 * variance.ln() - 0.5 * square / variance;
        (log_p + SHAPE * log - SHAPE * log.exp()).exp()
    };
    let grid: Vec<f64> = (-4000..2400).map(|k| 0.005 * f64::from(k)).collect();
    let total: f64 = grid.iter().map(|log| weight(*log)).sum();
    let average = |of: &dyn Fn(f64) -> f64| {
        grid.iter().map(|log| weight(*log) * of(*log)).sum::<f64>() / total
    };
    let mean = average(&|log| log);
    let sd = average(&|log| (log - mean).powi(2)).sqrt();
    let share = average(&|log| f64::from(u8::from(log > 3.0)));
    assert!((mean + 0.146).abs() < 1e-3 && (sd - 1.762).abs() < 1e-3);
    let (approximation, scales) = beside_a_tail_mode();
    for seed in 0..6 {
        let fit =
            |resume| controlled_of(&effects, &scales, &approximation, seed, 1_000_000, resume);
        let whole = fit(None);
        let refined = whole.refined();
        check(refined, 0, mean, sd);
        let out = column(refined, 0).iter().filter(|log| **log > 3.0).count();
        let out = out as f64 / refined.draws.count as f64;
        assert!((out / share - 1.0).abs() < 0.4, "{seed}: {out} for {share}");
        // With this seed, the chains agree when the mode has only half of its share.
        if seed == 4 {
            for at in (0..whole.checkpoints.len()).step_by(whole.checkpoints.len() / 7) {
                let checkpoint = Checkpoint::decode(&whole.checkpoints[at]).unwrap();
                assert!(fit(Some(checkpoint)).refined() == refined, "{at}");
            }
        }
    }
}

#[test]
fn a_tail_mode_that_cannot_be_explored_is_reported() {
    let effects = effects();
    let (approximation, scales) = beside_a_tail_mode();
    // Chains that agree before they have found the mode are a matter of chance, for a seed and a budget.
    let effective = (1..240).any(|trial| {
        let (k, seed) = (1 + trial % 40, 1 + trial / 40);
        let policy = Policy {
            max_gradients: 1000 * k,
            ..Policy::default()
        };
        let source = NoiseSource::new(seed, Simd::detect());
        let mut refine = Refine::new(&effects, &approximation, source, RefineSettings::default())
            .under(policy)
            .of_scales(&scales);
        let clock = ticking(0.001);
        let mut records: Vec<Record> = Vec::new();
        let mut control = Control::new(Budget::iterations(10_000), &clock, &mut records);
        let outcome = run(&mut refine, &identity(), &mut control).unwrap();
        let refined = outcome.output.unwrap();
        let effective = refined
            .reasons
            .iter()
            .any(|r| r.contains("started in a tail"));
        assert!(!effective || !refined.mixed() && !outcome.status.is_converged());
        effective
    });
    assert!(effective);
}

/// Neal's funnel v ~ N(0, 3), x | v ~ N(0, e^(v/2)). A single posterior contains scales from e^(-4.5) to e^4.5.
fn funnel(leaves: usize) -> impl LogDensity {
    Plain {
        dim: leaves + 1,
        log_density: move |z: &[f64], slope: &mut [f64]| {
            let precision = (-z[0]).exp();
            let squares: f64 = z[1..].iter().map(|x| x * x).sum();
            let d = leaves as f64;
            slope[0] = -z[0] / 9.0 - 0.5 * d + 0.5 * precision * squares;
            for (s, x) in slope[1..].iter_mut().zip(&z[1..]) {
                *s = -precision * x;
            }
            let constant = 0.5 * (d + 1.0) * TAU.ln() + 3f64.ln();
            -z[0] * z[0] / 18.0 - 0.5 * d * z[0] - 0.5 * precision * squares - constant
        },
    }
}

#[test]
fn funnels() {
    for leaves in [1, 4] {
        let mut sd = vec![1.0; leaves + 1];
        sd[0] = 2.0;
        let refined = refine(&funnel(leaves), &mean_field(&vec![0.0; leaves + 1], &sd), 5);
        within(refined.log_evidence, 0.0, 4.0);
        check(&refined, 0, 0.0, 3.0);
    }
}

/// The eight schools with a half-Cauchy prior on τ (unnormalised). The coordinates are μ, log τ, and either θ or the
/// standardised effects.
fn schools(centred: bool) -> impl LogDensity {
    const DATA: [(f64, f64); 8] = [
        (28.0, 15.0),
        (8.0, 10.0),
        (-3.0, 16.0),
        (7.0, 11.0),
        (-1.0, 9.0),
        (1.0, 11.0),
        (18.0, 10.0),
        (12.0, 18.0),
    ];
    Plain {
        dim: 10,
        log_density: move |z: &[f64], slope: &mut [f64]| {
            let (mu, tau) = (z[0], z[1].exp());
            let share = tau * tau / (25.0 + tau * tau);
            let mut value = -0.02 * mu * mu + z[1] - (tau * tau / 25.0).ln_1p();
            (slope[0], slope[1]) = (-0.04 * mu, 1.0 - 2.0 * share);
            for (k, (y, se)) in DATA.iter().enumerate() {
                let x = z[2 + k];
                let theta = if centred { x } else { mu + tau * x };
                let pull = (y - theta) / (se * se);
                value -= 0.5 * (y - theta) * pull;
                if centred {
                    let e = (x - mu) / tau;
                    value -= 0.5 * e * e + z[1];
                    slope[0] += e / tau;
                    slope[1] += e * e - 1.0;
                    slope[2 + k] = pull - e / tau;
                } else {
                    value -= 0.5 * x * x;
                    slope[0] += pull;
                    slope[1] += pull * tau * x;
                    slope[2 + k] = pull * tau - x;
                }
            }
            value
        },
    }
}

/// The centred parameterisation of the eight schools has a funnel whose neck is thousands of times narrower than its
/// mouth. With the standardised effects, the posterior is the same, but has no funnel.
#[test]
fn centred_schools_agree_with_standardised_ones() {
    let (mut mean, mut sd) = (vec![4.5; 10], vec![5.0; 10]);
    (mean[1], sd[1]) = (1.0, 1.0);
    let centred = refine(&schools(true), &mean_field(&mean, &sd), 1);
    let (mut mean, mut sd) = (vec![0.0; 10], vec![1.0; 10]);
    (mean[0], mean[1], sd[0]) = (4.5, 1.0, 4.0);
    let standard = refine(&schools(false), &mean_field(&mean, &sd), 1);
    assert!(standard.mixed() && centred.mixed(), "{:?}", centred.reasons);
    for i in 0..2 {
        let judged = |r: &Refined| r.ensemble.judge_with_spread(column(r, i));
        let error = judged(&centred).mcse().hypot(judged(&standard).mcse());
        let (x, y) = (
            Summary::of(column(&centred, i)),
            Summary::of(column(&standard, i)),
        );
        assert!((x.mean - y.mean).abs() < 4.5 * error, "{x:?} {y:?}");
        assert!((x.sd / y.sd - 1.0).abs() < 0.1, "{x:?} {y:?}");
    }
    let (a, b) = (centred.log_evidence, standard.log_evidence);
    let size = a.standard_error.hypot(b.standard_error);
    assert!((a.mean - b.mean).abs() < 4.0 * size, "{a:?} {b:?}");
}

/// The autoregression has 300 steps, scales from 1 to e^3, and correlations of 0.8 between neighbours.
#[test]
fn hundreds_of_dimensions() {
    const D: usize = 300;
    let scale = |i: usize| (3.0 * i as f64 / D as f64).exp();
    let density = Plain {
        dim: D,
        log_density: |z: &[f64], slope: &mut [f64]| {
            let (rho, variance) = (0.8, 1.0 - 0.64);
            slope.fill(0.0);
            let mut value = -0.5 * D as f64 * TAU.ln() - 0.5 * (D - 1) as f64 * f64::ln(variance);
            let mut before = 0.0;
            for i in 0..D {
                let x = z[i] / scale(i);
                let (r, v) = if i == 0 { (0.0, 1.0) } else { (rho, variance) };
                let e = (x - r * before) / v;
                value -= 0.5 * e * e * v + scale(i).ln();
                slope[i] -= e / scale(i);
                if i > 0 {
                    slope[i - 1] += r * e / scale(i - 1);
                }
                before = x;
            }
            value
        },
    };
    let sd: Vec<f64> = (0..D).map(|i| 0.47 * scale(i)).collect();
    let refined = refine(&density, &mean_field(&[0.0; D], &sd), 1);
    within(refined.log_evidence, 0.0, 4.0);
    check(&refined, 0, 0.0, 1.0);
    check(&refined, 299, 0.0, scale(299));
}

/// The number of modes. Each mode is a unit normal at a distance of twelve standard deviations on one of eight axes. An
/// independent draw from the normal with the same moments reaches a mode in one of 100 000 cases, because it must match
/// seven directions at once.
const CORNERS: usize = 8;
const CORNER: f64 = 12.0;

fn corners() -> Plain<impl Fn(&[f64], &mut [f64]) -> f64 + Sync> {
    let log_density = |z: &[f64], slope: &mut [f64]| {
        let most = CORNER * z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weight = |x: f64| (CORNER * x - most).exp();
        let total: f64 = z.iter().map(|x| weight(*x)).sum();
        for (slope, x) in slope.iter_mut().zip(z) {
            *slope = CORNER * weight(*x) / total - x;
        }
        most + total.ln() - 0.5 * z.iter().map(|x| x * x).sum::<f64>()
    };
    Plain {
        dim: CORNERS,
        log_density,
    }
}

fn around_corners() -> Approximation {
    let share = 1.0 / CORNERS as f64;
    let variance = 1.0 + CORNER * CORNER * share * (1.0 - share);
    mean_field(&[CORNER * share; CORNERS], &[variance.sqrt(); CORNERS])
}

/// If two modes are near each other, the refinement mixes between them. If they are far apart, it refuses its draws or
/// weights the modes correctly, and never reports one of them alone. If there are many modes that no leap connects, it
/// refuses its draws.
#[test]
fn a_mixture_that_does_not_mix_is_refused() {
    let both = |distance: f64, seed: u64| {
        let density = Scalar(Mixture {
            dim: 2,
            distance,
            log_odds: 0.0,
        });
        let wide = (1.0 + 0.25 * distance * distance).sqrt();
        refine(&density, &mean_field(&[0.0; 2], &[wide; 2]), seed)
    };
    let near = both(2.0, 1);
    check(&near, 0, 0.0, 2f64.sqrt());
    for seed in 0..4 {
        let far = both(12.0, seed);
        assert!(!far.mixed() || Summary::of(column(&far, 0)).mean.abs() < 1.0);
    }
    for seed in 0..2 {
        assert!(!refine(&corners(), &around_corners(), seed).mixed());
    }
    // The chains start in one of two modes that are seven standard deviations apart. The refinement either finds the
    // other mode or refuses the draws.
    let density = Scalar(Mixture {
        dim: 1,
        distance: 7.0,
        log_odds: 0.0,
    });
    let one = refine(&density, &mean_field(&[3.5], &[1.0]), 1);
    let found = Summary::of(column(&one, 0));
    assert!(!one.mixed() || found.mean.abs() < 0.8, "{found:?}");
}

/// A density with a flat direction has no posterior, so chains cannot mix over that direction.
#[test]
fn improper_densities_are_refused() {
    let flat = Plain {
        dim: 2,
        log_density: |z: &[f64], slope: &mut [f64]| {
            slope.copy_from_slice(&[-z[0], 0.0]);
            -0.5 * z[0] * z[0]
        },
    };
    let refined = refine(&flat, &mean_field(&[0.0, 0.0], &[1.0, 50.0]), 1);
    assert!(!refined.mixed());
    let nowhere = Plain {
        dim: 1,
        log_density: |_: &[f64], _: &mut [f64]| f64::NAN,
    };
    let run = controlled(&nowhere, &mean_field(&[0.0], &[1.0]), 1, 10, None);
    assert!(run.outcome.output.is_none() && !run.outcome.status.is_converged());
}

struct Banana;

impl ScalarModel for Banana {
    fn dim(&self) -> usize {
        3
    }
    fn log_density<T: Real>(&self, z: &[T]) -> T {
        let zero = T::constant(0.0);
        z[0].normal_log_scale(zero, zero)
            + z[1].normal_log_scale(z[0].square().scale(0.5), zero)
            + z[2].normal_log_scale(z[1].scale(0.7), zero)
    }
}

/// The number of local parameters in [`levels`] whose width depends on the persistence. With fewer such parameters,
/// leaps would mix before the refinement finds this dependence.
const WIDE: usize = 6;

/// A density with a persistence, a level whose standard deviation depends on the persistence, and local parameters
/// around the level. The widths of the first [`WIDE`] local parameters depend on the persistence.
fn levels(locals: usize) -> Plain<impl Fn(&[f64], &mut [f64]) -> f64 + Sync> {
    let log_density = |z: &[f64], slope: &mut [f64]| {
        let (p, level) = (z[0], z[1]);
        let mut sum = -0.5 * p * p;
        slope[..2].copy_from_slice(&[-p, 0.0]);
        let mut term = |residual: f64, log_sd: f64, by_p: f64, of: Option<usize>| {
            let precision = (-2.0 * log_sd).exp();
            let square = residual * residual * precision;
            sum -= 0.5 * square + log_sd;
            slope[0] += by_p * (square - 1.0);
            let pull = residual * precision;
            match of {
                Some(local) => {
                    slope[local] = -pull;
                    slope[1] += pull;
                }
                None => slope[1] -= pull,
            }
        };
        term(level, 0.7 * p, 0.7, None);
        for (local, x) in z.iter().enumerate().skip(2) {
            let by_p = if local < 2 + WIDE { 0.6 } else { 0.0 };
            term(x - level, by_p * p, by_p, Some(local));
        }
        sum
    };
    Plain {
        dim: 2 + locals,
        log_density,
    }
}

/// Global and local parameters depend on a global parameter in ways that the approximation does not represent. The
/// draws nevertheless have the exact standard deviations, and a resumed run is bitwise identical.
#[test]
fn dependence_on_globals_is_sampled_and_resumed() {
    let density = levels(9);
    let dim = density.dim;
    let mut lists: Vec<Vec<u32>> = vec![(0..dim as u32).collect(); 2];
    lists.extend((2..dim as u32).map(|i| vec![0, 1, i]));
    let space = Space {
        dim,
        pattern: Some(Arc::new(Pattern::new(lists))),
    };
    let family = FamilyKind::Conditional.build(space.clone());
    let omega = family.diagonal(&vec![0.0; dim], &vec![0.0; dim]);
    let approximation = Approximation::new(FamilyKind::Conditional, space, omega).unwrap();
    let whole = controlled(&density, &approximation, 3, 1_000_000, None);
    assert!(
        whole.outcome.status.is_converged(),
        "{}",
        whole.outcome.status
    );
    let n = whole.checkpoints.len();
    // This uses E e^(2 s p) = e^(2 s²).
    let of_level = (2.0 * 0.7_f64.powi(2)).exp();
    let exact = [
        (0, 1.0),
        (1, of_level),
        (2, of_level + (2.0 * 0.6_f64.powi(2)).exp()),
        (dim - 1, of_level + 1.0),
    ];
    for (i, variance) in exact {
        let draws = whole.refined().draws.lanes();
        let row = draws.row(i);
        let average =
            |of: fn(f64) -> f64| row.iter().map(|x| of(*x)).sum::<f64>() / row.len() as f64;
        let (mean, sd) = (average(|x| x), average(|x| x * x).sqrt());
        assert!(mean.abs() < 0.1 * variance.sqrt(), "{i}: {mean}");
        assert!(
            (sd / variance.sqrt() - 1.0).abs() < 0.06,
            "{i}: {sd}, not {}",
            variance.sqrt()
        );
    }
    for at in (0..n).step_by(n / 5 + 1).chain([n - 1]) {
        let checkpoint = Checkpoint::decode(&whole.checkpoints[at]).unwrap();
        let rest = controlled(&density, &approximation, 3, 1_000_000, Some(checkpoint));
        assert_eq!(rest.refined(), whole.refined());
    }
}

#[test]
fn resuming_equals_never_stopping() {
    let density = Scalar(Banana);
    let approximation = mean_field(&[0.0, 0.5, 0.3], &[0.8, 1.0, 1.0]);
    let whole = controlled(&density, &approximation, 7, 1_000_000, None);
    assert!(
        whole.outcome.status.is_converged(),
        "{}",
        whole.outcome.status
    );
    let n = whole.checkpoints.len();
    // A checkpoint also contains the tail transforms of the coordinates.
    let last = Checkpoint::decode(&whole.checkpoints[n - 1]).unwrap();
    assert!(!last.state.nested("state").vec("tails").unwrap().is_empty());
    for at in (0..n).step_by(n / 9 + 1).chain([n - 1]) {
        let checkpoint = Checkpoint::decode(&whole.checkpoints[at]).unwrap();
        let rest = controlled(&density, &approximation, 7, 1_000_000, Some(checkpoint));
        assert_eq!(rest.refined(), whole.refined());
        assert_eq!(rest.outcome.status, whole.outcome.status);
    }
    let short = controlled(&density, &approximation, 7, n as u64 / 2, None);
    assert!(!short.refined().mixed());
    let pairs = short.records.iter().zip(&whole.records);
    assert!(pairs.clone().all(|(a, b)| a.same_result(b)));
}

#[test]
fn threads_change_no_bit() {
    let density = CorrelatedGaussian::exchangeable(&[1.0, 2.0, 3.0], 0.5);
    let approximation = mean_field(density.mean(), &[0.7, 1.4, 2.0]);
    let pool = |threads| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap()
    };
    let one = pool(1).install(|| refine(&density, &approximation, 3));
    let four = pool(4).install(|| refine(&density, &approximation, 3));
    assert_eq!(one, four);
}

#[test]
fn costs_are_bounded() {
    let refined = refine(&corners(), &around_corners(), 1);
    assert!(!refined.mixed());
    assert!(refined.calls.gradients <= LIMIT + LIMIT / 10 && refined.calls.gradients > LIMIT / 8);
}
