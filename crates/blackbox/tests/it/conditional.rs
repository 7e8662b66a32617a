//! Tests of the conditionally structured Gaussian: funnels with known answers, the policy's choice of the family,
//! resuming and threads.

use std::sync::Arc;

use jensen_blackbox::{
    FamilyChoice, FamilyKind, Fit, NoiseSource, Policy, RefineSettings, RefineWhen, Settings,
    Subject, begins_conditional, fit,
};
use jensen_density::{Lanes, LanesMut, LogDensity, Pattern, TwiceDifferentiable};
use jensen_math::simd::Simd;
use jensen_run::{Budget, Checkpoint, Control, Record};
use jensen_testkit::ticking;

const LOG_TWO_PI: f64 = 1.837_877_066_409_345_6;

/// The funnel v ~ N(0, 1), x ~ N(0, e^(v/2)). The first coordinates x are observed with unit noise.
struct Funnel {
    locals: usize,
    observed: Vec<f64>,
}

impl Funnel {
    fn normals(z: Lanes<'_>, lane: usize) -> (f64, f64) {
        let v = z.row(0)[lane];
        (v, (-v).exp())
    }
}

impl LogDensity for Funnel {
    type Workspace = Vec<f64>;
    fn dim(&self) -> usize {
        1 + self.locals
    }
    fn workspace(&self, _: usize) -> Vec<f64> {
        Vec::new()
    }
    fn value(&self, _: &mut Vec<f64>, z: Lanes<'_>, out: &mut [f64]) {
        for (l, out) in out.iter_mut().enumerate() {
            let (v, precision) = Self::normals(z, l);
            let terms = self.dim() + self.observed.len();
            let mut sum = -0.5 * (v * v + terms as f64 * LOG_TWO_PI);
            for i in 0..self.locals {
                let x = z.row(1 + i)[l];
                sum -= 0.5 * (x * x * precision + v);
                if let Some(y) = self.observed.get(i) {
                    sum -= 0.5 * (x - y) * (x - y);
                }
            }
            *out = sum;
        }
    }
    fn value_grad(&self, ws: &mut Vec<f64>, z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
        self.value(ws, z, out);
        for l in 0..z.lanes() {
            let (v, precision) = Self::normals(z, l);
            let mut by_v = -v;
            for i in 0..self.locals {
                let x = z.row(1 + i)[l];
                by_v += 0.5 * (x * x * precision - 1.0);
                let of_data = self.observed.get(i).map_or(0.0, |y| y - x);
                grad.row_mut(1 + i)[l] = of_data - x * precision;
            }
            grad.row_mut(0)[l] = by_v;
        }
    }
    fn pattern(&self) -> Option<Arc<Pattern>> {
        let mut lists = vec![vec![0]; self.dim()];
        lists[0] = (1..self.dim() as u32).collect();
        Some(Arc::new(Pattern::new(lists)))
    }
}

impl TwiceDifferentiable for Funnel {
    fn linearize(&self, ws: &mut Vec<f64>, z: Lanes<'_>) {
        *ws = z.as_slice().to_vec();
    }
    fn apply(&self, ws: &mut Vec<f64>, d: Lanes<'_>, mut out: LanesMut<'_>) {
        let lanes = d.lanes();
        let z = Lanes::new(ws, self.dim(), lanes);
        for l in 0..lanes {
            let (_, precision) = Self::normals(z, l);
            let dv = d.row(0)[l];
            let mut by_v = -dv;
            for i in 0..self.locals {
                let (x, dx) = (z.row(1 + i)[l], d.row(1 + i)[l]);
                by_v += precision * (x * dx - 0.5 * x * x * dv);
                let of_data = if i < self.observed.len() { dx } else { 0.0 };
                out.row_mut(1 + i)[l] = precision * (x * dv - dx) - of_data;
            }
            out.row_mut(0)[l] = by_v;
        }
    }
}

struct Run {
    fit: Fit,
    records: Vec<Record>,
    checkpoints: Vec<Vec<u8>>,
}

fn run(density: &Funnel, settings: &Settings, budget: u64, resume: Option<Checkpoint>) -> Run {
    let clock = ticking(0.001);
    let mut records: Vec<Record> = Vec::new();
    let mut checkpoints: Vec<Vec<u8>> = Vec::new();
    let mut control = Control::new(Budget::iterations(budget), &clock, &mut records);
    control.store = Some(&mut checkpoints);
    control.checkpoint_seconds = 0.0;
    control.resume = resume;
    let fit = fit(density, settings, &Subject::default(), &mut control).unwrap();
    Run {
        fit,
        records,
        checkpoints,
    }
}

fn large(locals: usize) -> Funnel {
    Funnel {
        locals,
        observed: vec![1.3, -0.4, 2.1, 0.2, -2.8, 0.9, -1.1, 0.3],
    }
}

/// Computes the mean and standard deviation of v, the standard deviation of an unobserved x, and the log evidence, by
/// quadrature over v.
fn exact(funnel: &Funnel) -> (f64, f64, f64, f64) {
    let (mut total, mut first, mut second, mut of_x) = (0.0, 0.0, 0.0, 0.0);
    let step = 0.01;
    for i in -1000..=1000 {
        let v = step * f64::from(i);
        let variance = v.exp() + 1.0;
        let logs = funnel
            .observed
            .iter()
            .map(|y| -0.5 * (y * y / variance + variance.ln() + LOG_TWO_PI));
        let mass = (logs.sum::<f64>() - 0.5 * (v * v + LOG_TWO_PI)).exp() * step;
        total += mass;
        first += mass * v;
        second += mass * v * v;
        of_x += mass * v.exp();
    }
    let mean = first / total;
    let sd = (second / total - mean * mean).sqrt();
    (mean, sd, (of_x / total).sqrt(), total.ln())
}

fn moments(row: &[f64]) -> (f64, f64) {
    let n = row.len() as f64;
    let mean = row.iter().sum::<f64>() / n;
    let squares = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
    (mean, (squares / n).sqrt())
}

#[test]
fn a_funnel_is_met_as_far_as_a_normal_goes() {
    let funnel = Funnel {
        locals: 11,
        observed: Vec::new(),
    };
    let settings = Settings {
        family: FamilyChoice::Only(FamilyKind::Conditional),
        ..Settings::default()
    };
    let fit = run(&funnel, &settings, 1000, None).fit;
    assert!(fit.trusted(), "{:?}", fit.warnings());
    assert_eq!(fit.best().family, FamilyKind::Conditional);
    // If the scales followed the neck without limit, the family would match this funnel exactly, but it would fit long
    // tails of other global parameters badly.
    assert!(fit.elbo().abs() < 1e-3, "{}", fit.elbo());
    let source = NoiseSource::new(7, Simd::detect());
    let draws = fit.approximation().draws(100_000, source);
    let (_, sd, of_x, _) = exact(&funnel);
    for i in 0..12 {
        let (mean, own) = moments(draws.lanes().row(i));
        let sd = if i == 0 { sd } else { of_x };
        assert!(mean.abs() < 0.02 * sd, "{i}: {mean}");
        assert!((own / sd - 1.0).abs() < 0.05, "{i}: {own}, not {sd}");
    }
}

#[test]
fn the_policy_takes_locals_given_globals_in_many_coordinates() {
    let funnel = large(520);
    let settings = Settings::default();
    assert!(begins_conditional(&funnel, &settings));
    assert!(!begins_conditional(&large(120), &settings));
    let fit = run(&funnel, &settings, 1000, None).fit;
    assert!(fit.trusted(), "{:?}", fit.warnings());
    assert!(fit.starts.is_empty());
    assert_eq!(fit.best().family, FamilyKind::Conditional);
    let (mean, sd, of_x, evidence) = exact(&funnel);
    let draws = match &fit.refined {
        Some(refined) => refined.draws.clone(),
        None => fit
            .approximation()
            .draws(20_000, NoiseSource::new(7, Simd::detect())),
    };
    let (own_mean, own_sd) = moments(draws.lanes().row(0));
    assert!((own_mean - mean).abs() < 0.1 * sd, "{own_mean}, not {mean}");
    assert!((own_sd / sd - 1.0).abs() < 0.05, "{own_sd}, not {sd}");
    // All coordinates share these tails, so each of the values is accurate only to a tenth.
    let mut variance = 0.0;
    for i in 20..120 {
        let (mean, own) = moments(draws.lanes().row(i));
        assert!(mean.abs() < 0.15 * of_x, "{i}: {mean}");
        variance += own * own / 100.0;
    }
    let own = variance.sqrt();
    assert!((own / of_x - 1.0).abs() < 0.05, "{own}, not {of_x}");
    let bound = fit.best().evaluation.importance_bound;
    let error = (bound.mean - evidence).abs();
    assert!(error < 0.1, "{}, not {evidence}", bound.mean);
}

/// In a hundred or more dimensions, the policy tries the conditionally structured Gaussian after the mean-field
/// Gaussian of the starts. It uses the sparse family only for fits without refinement.
#[test]
fn the_policy_takes_them_before_sparse_precisions() {
    let funnel = large(120);
    let kinds = |when: RefineWhen| {
        let settings = Settings {
            refine: RefineSettings::of(when),
            ..Settings::default()
        };
        let fit = run(&funnel, &settings, 1000, None).fit;
        let kinds: Vec<_> = (fit.families.iter())
            .filter_map(|result| result.family.kind())
            .collect();
        (kinds, fit.trusted(), !fit.starts.is_empty())
    };
    let first = vec![FamilyKind::MeanField, FamilyKind::Conditional];
    assert_eq!(kinds(RefineWhen::Auto), (first.clone(), true, true));
    let (all, trusted, _) = kinds(RefineWhen::Never);
    assert_eq!(all[..2], first);
    assert!(trusted || all[2..] == [FamilyKind::Sparse], "{all:?}");
}

#[test]
fn resuming_and_threads_change_no_bit() {
    let funnel = large(120);
    let settings = Settings {
        family: FamilyChoice::Only(FamilyKind::Conditional),
        policy: Policy {
            max_gradients: 40_000,
            ..Policy::default()
        },
        refine: RefineSettings::of(RefineWhen::Always),
        ..Settings::default()
    };
    let of = |threads: usize, budget, resume| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let pool = pool.build().unwrap();
        pool.install(|| run(&funnel, &settings, budget, resume))
    };
    let whole = of(1, 100_000, None);
    let n = whole.records.len();
    assert!(whole.fit.refined.is_some() && n > 20);
    let bits = |fit: &Fit| {
        let refined = fit.refined.as_ref().unwrap();
        let draws = refined.draws.z.iter().chain(&refined.draws.log_q);
        let all = fit.best().omega.iter().chain(draws).chain(&refined.log_p);
        all.map(|x| x.to_bits()).collect::<Vec<u64>>()
    };
    assert_eq!(bits(&whole.fit), bits(&of(3, 100_000, None).fit));
    for at in [1, n / 2] {
        let checkpoint = Checkpoint::decode(&whole.checkpoints[at]).unwrap();
        let rest = of(2, 100_000, Some(checkpoint));
        assert_eq!(rest.records.len(), n - 1 - at);
        assert_eq!(bits(&whole.fit), bits(&rest.fit));
        let short = of(1, at as u64 + 1, None);
        let agree = short.records.iter().zip(&whole.records);
        assert!(agree.clone().all(|(a, b)| a.same_result(b)));
    }
}
