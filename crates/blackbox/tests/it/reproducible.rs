//! Tests that runs give bitwise identical results if they are shortened, resumed or distributed over threads.

use jensen_blackbox::{
    AdviSettings, AutoSettings, BbviSettings, FamilyChoice, FamilyKind, Fit, HfsgviSettings,
    Method, PaperTrustSettings, RefineSettings, RefineWhen, SaaSettings, Settings, Subject,
    TrustSettings, fit,
};
use jensen_density::{Lanes, LanesMut, LogDensity, TwiceDifferentiable};
use jensen_run::{Budget, Checkpoint, Control, Record};
use jensen_testkit::{CorrelatedGaussian, EightSchools, Scalar, ticking};

fn methods() -> Vec<Settings> {
    let trust = TrustSettings {
        max_iterations: 12,
        max_draws: 1024,
        ..TrustSettings::default()
    };
    let methods = [
        // With these settings, the method continues on fixed draws.
        Method::Auto(AutoSettings {
            trust,
            ..AutoSettings::default()
        }),
        Method::Saa(SaaSettings::default()),
        Method::Trust(trust),
        // With these settings, the method uses Krylov subspaces instead of explicit Hessians.
        Method::Trust(TrustSettings {
            explicit_limit: 0,
            ..trust
        }),
        Method::PaperTrust(PaperTrustSettings { trust }),
        Method::Hfsgvi(HfsgviSettings {
            max_iterations: 12,
            ..HfsgviSettings::default()
        }),
        Method::Advi(AdviSettings {
            max_iterations: 600,
            ..AdviSettings::default()
        }),
        Method::Bbvi(BbviSettings {
            window: 25,
            draws: 16,
            ..BbviSettings::default()
        }),
    ];
    methods
        .map(|method| Settings {
            method,
            seed: 5,
            refine: RefineSettings::of(RefineWhen::Never),
            ..Settings::default()
        })
        .into()
}

struct Run {
    fit: Fit,
    records: Vec<Record>,
    checkpoints: Vec<Vec<u8>>,
}

fn run(
    density: &impl TwiceDifferentiable,
    settings: &Settings,
    budget: u64,
    resume: Option<Checkpoint>,
) -> Run {
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

fn same(a: &Fit, b: &Fit) {
    assert_eq!(a.families, b.families);
    assert_eq!(a.status, b.status);
    assert_eq!(a.iterations, b.iterations);
    assert_eq!(a.calls, b.calls);
    assert_eq!(a.warnings(), b.warnings());
    for (x, y) in a.best().omega.iter().zip(&b.best().omega) {
        assert_eq!(x.to_bits(), y.to_bits());
    }
}

#[test]
fn a_short_run_is_a_prefix_of_a_long_one() {
    let density = Scalar(EightSchools { centred: true });
    for settings in methods() {
        let long = run(&density, &settings, 100_000, None);
        let n = long.records.len();
        for budget in [1, n / 3, n / 2, n - 1] {
            let short = run(&density, &settings, budget as u64, None);
            assert_eq!(short.records.len(), budget);
            let agree = short.records.iter().zip(&long.records);
            assert!(agree.clone().all(|(a, b)| a.same_result(b)));
            assert!(!short.fit.converged() || short.fit.families.len() > 1);
        }
    }
}

#[test]
fn resuming_equals_never_stopping() {
    let density = Scalar(EightSchools { centred: true });
    for settings in methods() {
        let whole = run(&density, &settings, 100_000, None);
        let n = whole.checkpoints.len();
        assert_eq!(n, whole.records.len());
        for at in (0..n).step_by(n / 12 + 1).chain([n - 2, n - 1]) {
            let checkpoint = Checkpoint::decode(&whole.checkpoints[at]).unwrap();
            let rest = run(&density, &settings, 100_000, Some(checkpoint));
            same(&rest.fit, &whole.fit);
            assert_eq!(rest.records.len(), n - 1 - at);
            let agree = rest.records.iter().zip(&whole.records[at + 1..]);
            assert!(agree.clone().all(|(a, b)| a.same_result(b)));
        }
    }
}

#[test]
fn a_stopped_run_is_still_judged() {
    let density = Scalar(EightSchools { centred: false });
    for settings in methods() {
        let stopped = run(&density, &settings, 3, None).fit;
        assert!(!stopped.converged() && !stopped.trusted());
        assert_eq!(stopped.status.name(), "budget_reached");
        let draws = stopped.best().evaluation.draws;
        assert!([1, 2, 4, 8, 32].contains(&(draws / settings.evaluation_draws)));
        assert!(!stopped.warnings().is_empty());
    }
}

#[test]
fn seeds_differ_and_repeat() {
    let density = Scalar(EightSchools { centred: false });
    for mut settings in methods() {
        settings.family = FamilyChoice::Only(FamilyKind::MeanField);
        let first = run(&density, &settings, 2000, None).fit;
        same(&first, &run(&density, &settings, 2000, None).fit);
        settings.seed = 6;
        let other = run(&density, &settings, 2000, None).fit;
        assert_ne!(first.best().omega, other.best().omega);
    }
}

/// Evaluates the density in blocks of three lanes on separate threads, as a parallel model may do.
struct Threaded<D>(D);

impl<D: TwiceDifferentiable> Threaded<D> {
    fn blocks(
        &self,
        z: Lanes<'_>,
        rows_out: usize,
        work: impl Fn(&D, Lanes<'_>, usize) -> Vec<f64> + Sync,
    ) -> Vec<f64> {
        let (rows, lanes) = (z.rows(), z.lanes());
        let starts: Vec<usize> = (0..lanes).step_by(3).collect();
        let parts: Vec<Vec<f64>> = std::thread::scope(|scope| {
            let handles: Vec<_> = starts
                .iter()
                .map(|&first| {
                    let n = 3.min(lanes - first);
                    let part: Vec<f64> = (0..rows)
                        .flat_map(|r| z.row(r)[first..first + n].to_vec())
                        .collect();
                    let work = &work;
                    scope.spawn(move || work(&self.0, Lanes::new(&part, rows, n), first))
                })
                .collect();
            handles.into_iter().map(|h| h.join().unwrap()).collect()
        });
        let mut out = vec![0.0; rows_out * lanes];
        for (part, &first) in parts.iter().zip(&starts) {
            let n = part.len() / rows_out;
            for r in 0..rows_out {
                out[r * lanes + first..r * lanes + first + n]
                    .copy_from_slice(&part[r * n..(r + 1) * n]);
            }
        }
        out
    }
}

impl<D: TwiceDifferentiable> LogDensity for Threaded<D> {
    type Workspace = Vec<f64>;
    fn dim(&self) -> usize {
        self.0.dim()
    }
    fn workspace(&self, _: usize) -> Vec<f64> {
        Vec::new()
    }
    fn value(&self, _: &mut Vec<f64>, z: Lanes<'_>, out: &mut [f64]) {
        let values = self.blocks(z, 1, |density, z, _| {
            let mut out = vec![0.0; z.lanes()];
            density.value(&mut density.workspace(z.lanes()), z, &mut out);
            out
        });
        out.copy_from_slice(&values);
    }
    fn value_grad(&self, _: &mut Vec<f64>, z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
        let dim = self.dim();
        let both = self.blocks(z, dim + 1, |density, z, _| {
            let lanes = z.lanes();
            let mut out = vec![0.0; (dim + 1) * lanes];
            let (value, grad) = out.split_at_mut(lanes);
            let grad = LanesMut::new(grad, dim, lanes);
            density.value_grad(&mut density.workspace(lanes), z, value, grad);
            out
        });
        let (values, gradients) = both.split_at(z.lanes());
        out.copy_from_slice(values);
        grad.as_mut_slice().copy_from_slice(gradients);
    }
}

impl<D: TwiceDifferentiable> TwiceDifferentiable for Threaded<D> {
    fn linearize(&self, ws: &mut Vec<f64>, z: Lanes<'_>) {
        *ws = z.as_slice().to_vec();
    }
    fn apply(&self, ws: &mut Vec<f64>, v: Lanes<'_>, mut out: LanesMut<'_>) {
        let (dim, lanes) = (v.rows(), v.lanes());
        let draws = &*ws;
        let products = self.blocks(v, dim, |density, v, first| {
            let n = v.lanes();
            let z: Vec<f64> = (0..dim)
                .flat_map(|r| draws[r * lanes + first..r * lanes + first + n].to_vec())
                .collect();
            let mut out = vec![0.0; dim * n];
            density.hvp(
                &mut density.workspace(n),
                Lanes::new(&z, dim, n),
                v,
                LanesMut::new(&mut out, dim, n),
            );
            out
        });
        out.as_mut_slice().copy_from_slice(&products);
    }
}

#[test]
fn splitting_lanes_over_threads_changes_nothing() {
    let density = CorrelatedGaussian::exchangeable(&[1.0, 5.0], 0.8);
    let settings = Settings {
        evaluation_draws: 200,
        ..Settings::default()
    };
    let alone = run(&density, &settings, 1000, None).fit;
    let threaded = run(&Threaded(density), &settings, 1000, None).fit;
    same(&alone, &threaded);
}
