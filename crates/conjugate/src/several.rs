//! Runs several fits and keeps the best one. The candidates are different starts of a model, or models with different
//! numbers of components.
//!
//! The run fits one candidate after another, each for a limited number of iterations. Budgets, the trace, checkpoints
//! and interruption work as they do in a single fit.

use jensen_run::{
    Algorithm, Archive, ArchiveError, Control, Identity, Limit, Outcome, RunError, Snapshot,
    Status, Step, run,
};

use crate::driver::{Driver, DriverSettings, FitState};
use crate::fit::{ModelFit, identity};
use crate::model::ConjugateModel;
use crate::pointwise::{NormaliserTable, Pointwise, VectorGlobals, untempered_bound};

/// One of the fits in a run.
pub struct Candidate<'a, M> {
    /// The model to fit.
    pub model: &'a M,
    /// Settings of the fit, including its seed.
    pub settings: DriverSettings,
    /// A number of nats that is added to the candidate's bound before candidates are compared.
    ///
    /// A mixture of K components has K! posterior modes that differ only by the labels of the components. q describes
    /// one of these modes, and adding log K! accounts for the others in the evidence (Bishop, *Pattern Recognition and
    /// Machine Learning*, 2006, 10.2.4).
    pub credit: f64,
}

/// The result of one candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// The bound of the candidate at T = 1 in nats, if it has one.
    pub elbo: Option<f64>,
    /// Number of iterations that the candidate took.
    pub iterations: u64,
    /// The status of the candidate at the end.
    pub status: Status,
}

/// The best of several fits.
#[derive(Clone, Debug)]
pub struct BestFit {
    /// The best fit.
    pub fit: ModelFit,
    /// The index of the best candidate.
    pub chosen: usize,
    /// The results of the candidates in order. The list is shorter if the run was stopped early.
    pub ended: Vec<Ended>,
}

type Inner = FitState<VectorGlobals, NormaliserTable>;

/// The state of a run that fits several candidates.
#[derive(Clone, Debug)]
pub struct SeveralState {
    at: u64,
    begun: u64,
    current: Inner,
    ended: Vec<Ended>,
    best: Option<(u64, Inner)>,
    points: [u64; 2],
}

impl Snapshot for SeveralState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.set("at", self.at);
        archive.set("begun", self.begun);
        archive.nest("current", self.current.save());
        let statuses: Vec<(u64, &Status)> = self
            .ended
            .iter()
            .map(|e| (e.iterations, &e.status))
            .collect();
        archive.set("ended", statuses);
        let bounds: Vec<f64> = self
            .ended
            .iter()
            .map(|e| e.elbo.unwrap_or(f64::NAN))
            .collect();
        archive.put("elbos", &bounds);
        archive.set("best", self.best.as_ref().map(|best| best.0));
        if let Some((_, best)) = &self.best {
            archive.nest("best_state", best.save());
        }
        archive.set("points", self.points);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let statuses: Vec<(u64, Status)> = archive.get("ended")?;
        let bounds = archive.vec_of("elbos", statuses.len())?;
        let best: Option<u64> = archive.get("best")?;
        Ok(Self {
            at: archive.get("at")?,
            begun: archive.get("begun")?,
            current: Inner::restore(&archive.nested("current"))?,
            ended: statuses
                .into_iter()
                .zip(bounds)
                .map(|((iterations, status), elbo)| Ended {
                    elbo: (!elbo.is_nan()).then_some(elbo),
                    iterations,
                    status,
                })
                .collect(),
            best: best
                .map(|at| Ok((at, Inner::restore(&archive.nested("best_state"))?)))
                .transpose()?,
            points: archive.get("points")?,
        })
    }
}

struct Several<'a, M: ConjugateModel> {
    candidates: &'a [Candidate<'a, M>],
    each: u64,
    driver: Option<(u64, Driver<Pointwise<'a, M>>)>,
}

impl<'a, M: ConjugateModel> Several<'a, M> {
    fn driver(&mut self, at: u64) -> &mut Driver<Pointwise<'a, M>> {
        if self.driver.as_ref().is_none_or(|driver| driver.0 != at) {
            let Candidate {
                model, settings, ..
            } = &self.candidates[at as usize];
            let driver = Driver::new(Pointwise::new(*model), settings.clone());
            self.driver = Some((at, driver));
        }
        &mut self.driver.as_mut().expect("made above").1
    }

    fn end(&mut self, state: &mut SeveralState, iterations: u64, status: Status) {
        let at = state.at;
        let output = self.driver(at).output(&state.current);
        let elbo = untempered_bound(self.candidates[at as usize].model, &output.globals);
        let worth = |at: u64, elbo: Option<f64>| {
            elbo.map_or(f64::NEG_INFINITY, |elbo| {
                elbo + self.candidates[at as usize].credit
            })
        };
        state.ended.push(Ended {
            elbo: elbo.is_finite().then_some(elbo),
            iterations,
            status,
        });
        state.points[0] += output.used;
        state.points[1] = state.points[1].max(output.skipped);
        let worth_of = |at: u64| worth(at, state.ended[at as usize].elbo);
        if (state.best.as_ref()).is_none_or(|(best, _)| worth_of(at) > worth_of(*best)) {
            state.best = Some((at, output));
        }
    }
}

impl<M: ConjugateModel> Algorithm for Several<'_, M> {
    type State = SeveralState;
    type Output = SeveralState;

    fn init(&mut self) -> Result<SeveralState, Status> {
        Ok(SeveralState {
            at: 0,
            begun: 0,
            current: self.driver(0).init()?,
            ended: Vec::new(),
            best: None,
            points: [0; 2],
        })
    }

    fn step(&mut self, state: &mut SeveralState, iteration: u64) -> Step {
        let done = iteration - state.begun;
        let step = self.driver(state.at).step(&mut state.current, done);
        let mut record = step.record.with("candidate", (state.at + 1) as f64);
        record.oracle_calls += state.points[0];
        let ending = match step.status {
            Some(Status::Interrupted { .. }) => {
                return Step {
                    record,
                    status: Some(Status::Interrupted { at: iteration - 1 }),
                };
            }
            None if done >= self.each => Status::BudgetReached {
                limit: Limit::Iterations(done),
                detail: String::new(),
            },
            None => return Step::go_on(record),
            Some(status) => status,
        };
        self.end(state, done, ending);
        while state.at + 1 < self.candidates.len() as u64 {
            state.at += 1;
            state.begun = iteration;
            match self.driver(state.at).init() {
                Ok(begun) => {
                    state.current = begun;
                    return Step::go_on(record);
                }
                Err(status) => state.ended.push(Ended {
                    elbo: None,
                    iterations: 0,
                    status,
                }),
            }
        }
        let best = state.best.as_ref().map_or(0, |best| best.0 as usize);
        Step::finish(record, state.ended[best].status.clone())
    }

    fn output(&mut self, state: &SeveralState) -> SeveralState {
        let mut state = state.clone();
        if state.best.is_none() {
            let output = self.driver(state.at).output(&state.current);
            state.points = [output.used, output.skipped];
            state.best = Some((state.at, output));
        }
        state
    }
}

/// Returns the identity that the checkpoint of a run with these candidates must match. The identity contains all models
/// and seeds.
///
/// # Panics
/// Panics if there are no candidates.
pub fn identity_of_several<M: ConjugateModel>(
    candidates: &[Candidate<'_, M>],
    each: u64,
    data_hash: &str,
) -> Identity {
    let mut identities = candidates
        .iter()
        .map(|candidate| identity(candidate.model, &candidate.settings, data_hash));
    let mut first = identities.next().expect("a candidate");
    if candidates.len() > 1 {
        let others: Vec<String> = identities
            .map(|other| {
                format!(
                    "{} {} {}",
                    other.seed, other.model_hash, other.settings["temper"]
                )
            })
            .collect();
        first.settings["others"] = others.into();
        // The iteration at which one candidate ends determines the iterations of the next, so it is part of the
        // identity.
        first.settings["each"] = each.into();
    }
    first
}

/// Fits all candidates, each for at most `each` iterations, and keeps the one with the largest sum of bound and credit.
///
/// # Errors
/// Fails if a checkpoint comes from another run.
///
/// # Panics
/// Panics if there are no candidates.
pub fn fit_best<M: ConjugateModel>(
    candidates: &[Candidate<'_, M>],
    each: u64,
    data_hash: &str,
    control: &mut Control<'_>,
) -> Result<Outcome<BestFit>, RunError> {
    let mut several = Several {
        candidates,
        each,
        driver: None,
    };
    let identity = identity_of_several(candidates, each, data_hash);
    let outcome = run(&mut several, &identity, control)?;
    Ok(Outcome {
        output: outcome.output.and_then(|state| {
            let (chosen, best) = state.best?;
            let Candidate {
                model, settings, ..
            } = &candidates[chosen as usize];
            let [points, skipped] = state.points;
            Some(BestFit {
                fit: ModelFit {
                    points,
                    skipped,
                    ..ModelFit::of(*model, settings, best)
                },
                chosen: chosen as usize,
                ended: state.ended,
            })
        }),
        status: outcome.status,
        iterations: outcome.iterations,
        seconds: outcome.seconds,
    })
}

#[cfg(test)]
mod tests {
    use jensen_run::{Budget, Silent};

    use super::*;
    use crate::driver::Mode;
    use crate::fit::fit;
    use crate::models::{Covariance, Gaussians, Mixture};
    use crate::temper::Temper;

    fn clusters() -> Gaussians {
        let data = (0..120).map(|i| f64::from(i % 3) * 6.0 + (f64::from(i) * 2.4).sin());
        Gaussians::new(Covariance::Full, 1, data.collect())
    }

    fn settings(seed: u64) -> DriverSettings {
        DriverSettings {
            mode: Mode::Batch {
                tolerance: 1e-9,
                max_iterations: u64::MAX,
            },
            temper: Temper::None,
            seed,
            scores_per_pass: 0.0,
        }
    }

    fn bounded(iterations: u64) -> (Outcome<BestFit>, Vec<Vec<u8>>) {
        let data = clusters();
        let models: Vec<Mixture<&Gaussians>> =
            (1..=5).map(|k| Mixture::new(&data, k, 1.0)).collect();
        let candidates: Vec<Candidate<'_, Mixture<&Gaussians>>> = models
            .iter()
            .zip(1..)
            .flat_map(|(model, k)| {
                (0..2).map(move |seed| Candidate {
                    model,
                    settings: settings(seed),
                    credit: jensen_math::special::lgamma(f64::from(k) + 1.0),
                })
            })
            .collect();
        let (mut silent, clock) = (Silent, || 0.0);
        let mut saved: Vec<Vec<u8>> = Vec::new();
        let mut control = Control::new(Budget::iterations(iterations), &clock, &mut silent);
        control.store = Some(&mut saved);
        control.checkpoint_seconds = 0.0;
        let outcome = fit_best(&candidates, 200, "", &mut control).unwrap();
        (outcome, saved)
    }

    #[test]
    fn the_bound_chooses_the_number_of_components() {
        let (outcome, _) = bounded(u64::MAX);
        let best = outcome.output.unwrap();
        assert_eq!(best.chosen / 2 + 1, 3);
        assert!(outcome.status.is_converged());
        assert_eq!(best.ended.len(), 10);
        let all: u64 = best.ended.iter().map(|ended| ended.iterations).sum();
        assert_eq!(outcome.iterations, all);
        // Each candidate must have the same result as when it is fitted alone.
        let data = clusters();
        let model = Mixture::new(&data, 3, 1.0);
        let (mut silent, clock) = (Silent, || 0.0);
        let mut control = Control::new(Budget::iterations(u64::MAX), &clock, &mut silent);
        for seed in 0..2 {
            let alone = fit(&model, &settings(seed), "", &mut control)
                .unwrap()
                .output;
            assert_eq!(
                best.ended[4 + seed as usize].elbo,
                alone.map(|fit| fit.elbo)
            );
        }
    }

    #[test]
    fn runs_of_several_fits_are_prefixes() {
        let (whole, all) = bounded(u64::MAX);
        for stop in [3, whole.iterations / 2] {
            let (part, saved) = bounded(stop);
            let checkpoint = |bytes: &[u8]| {
                let found = jensen_run::Checkpoint::decode(bytes).unwrap();
                SeveralState::restore(&found.state.nested("state"))
                    .unwrap()
                    .save()
            };
            let at = part.iterations as usize - 1;
            assert_eq!(checkpoint(&saved[at]), checkpoint(&all[at]));
            assert!(part.output.is_some());
        }
    }
}
