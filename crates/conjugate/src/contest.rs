//! Runs several fits and keeps the best one.
//!
//! The run fits one candidate after another, each for a limited number of iterations. Budgets, the trace, checkpoints
//! and interruption work as they do in a single fit.

use jensen_run::{Algorithm, Archive, ArchiveError, Limit, Snapshot, Status, Step};

use crate::driver::{Driver, FitState};
use crate::engine::Engine;

/// The fits that a run compares.
pub(crate) trait Contest {
    /// The engine of every fit.
    type Engine: Engine;

    /// Returns the number of candidates, which is at least 1.
    fn count(&self) -> usize;

    /// Creates the fit of a candidate.
    fn driver(&self, candidate: usize) -> Driver<Self::Engine>;

    /// Returns the scores of a fit that has ended.
    fn scores(
        &self,
        candidate: usize,
        driver: &mut Driver<Self::Engine>,
        output: &StateOf<Self::Engine>,
    ) -> Vec<f64>;

    /// Returns whether candidate `new` replaces candidate `best`. Both have ended.
    fn is_better(&self, ended: &[Ended], new: usize, best: usize) -> bool;
}

pub(crate) type StateOf<E> = FitState<<E as Engine>::Globals, <E as Engine>::Table>;

/// The result of one candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// The numbers by which candidates are compared. For a model of points, this is its bound at T = 1 in nats. For
    /// topics, these are the log predictive probabilities of the held-out documents, in nats. The vector is empty if the
    /// candidate has no result.
    pub scores: Vec<f64>,
    /// Number of iterations that the candidate took.
    pub iterations: u64,
    /// The status of the candidate at the end.
    pub status: Status,
}

impl Ended {
    /// Returns the bound of a model of points at T = 1 in nats, if it is finite.
    pub fn elbo(&self) -> Option<f64> {
        self.scores.first().copied().filter(|elbo| elbo.is_finite())
    }
}

/// The state of a run that fits several candidates.
#[derive(Clone, Debug)]
pub struct SeveralState<G, T> {
    at: u64,
    begun: u64,
    current: FitState<G, T>,
    pub(crate) ended: Vec<Ended>,
    pub(crate) best: Option<(u64, FitState<G, T>)>,
    /// The numbers of points that all candidates used, and the largest number that one of them skipped.
    pub(crate) points: [u64; 2],
}

impl<G: Snapshot, T: Snapshot> Snapshot for SeveralState<G, T> {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.set("at", self.at);
        archive.set("begun", self.begun);
        archive.nest("current", self.current.save());
        let of = |ended: &Ended| (ended.iterations, ended.status.clone(), ended.scores.len());
        let ended: Vec<(u64, Status, usize)> = self.ended.iter().map(of).collect();
        archive.set("ended", ended);
        let scores = self.ended.iter().flat_map(|ended| &ended.scores);
        archive.put("scores", &scores.copied().collect::<Vec<f64>>());
        archive.set("best", self.best.as_ref().map(|best| best.0));
        if let Some((_, best)) = &self.best {
            archive.nest("best_state", best.save());
        }
        archive.set("points", self.points);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let ended: Vec<(u64, Status, usize)> = archive.get("ended")?;
        let all = archive.vec_of("scores", ended.iter().map(|ended| ended.2).sum())?;
        let mut all = all.into_iter();
        let best: Option<u64> = archive.get("best")?;
        Ok(Self {
            at: archive.get("at")?,
            begun: archive.get("begun")?,
            current: FitState::restore(&archive.nested("current"))?,
            ended: ended
                .into_iter()
                .map(|(iterations, status, scores)| Ended {
                    scores: all.by_ref().take(scores).collect(),
                    iterations,
                    status,
                })
                .collect(),
            best: best
                .map(|at| Ok((at, FitState::restore(&archive.nested("best_state"))?)))
                .transpose()?,
            points: archive.get("points")?,
        })
    }
}

/// The run of all candidates, each of which takes at most `each` iterations.
pub(crate) struct Several<C: Contest> {
    contest: C,
    each: u64,
    driver: Option<(u64, Driver<C::Engine>)>,
}

impl<C: Contest> Several<C> {
    pub fn new(contest: C, each: u64) -> Self {
        Self {
            contest,
            each,
            driver: None,
        }
    }

    fn driver(&mut self, at: u64) -> &mut Driver<C::Engine> {
        if self.driver.as_ref().is_none_or(|driver| driver.0 != at) {
            self.driver = Some((at, self.contest.driver(at as usize)));
        }
        &mut self.driver.as_mut().expect("made above").1
    }

    fn end(&mut self, state: &mut State<C>, iterations: u64, status: Status) {
        let at = state.at;
        let output = self.driver(at).output(&state.current);
        let driver = &mut self.driver.as_mut().expect("made above").1;
        state.ended.push(Ended {
            scores: self.contest.scores(at as usize, driver, &output),
            iterations,
            status,
        });
        state.points[0] += output.used;
        state.points[1] = state.points[1].max(output.skipped);
        let best = state.best.as_ref().map(|best| best.0 as usize);
        if best.is_none_or(|best| self.contest.is_better(&state.ended, at as usize, best)) {
            state.best = Some((at, output));
        }
    }
}

type State<C> = SeveralState<
    <<C as Contest>::Engine as Engine>::Globals,
    <<C as Contest>::Engine as Engine>::Table,
>;

impl<C: Contest> Algorithm for Several<C> {
    type State = State<C>;
    type Output = State<C>;

    fn init(&mut self) -> Result<State<C>, Status> {
        Ok(SeveralState {
            at: 0,
            begun: 0,
            current: self.driver(0).init()?,
            ended: Vec::new(),
            best: None,
            points: [0; 2],
        })
    }

    fn step(&mut self, state: &mut State<C>, iteration: u64) -> Step {
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
        while state.at + 1 < self.contest.count() as u64 {
            state.at += 1;
            state.begun = iteration;
            match self.driver(state.at).init() {
                Ok(begun) => {
                    state.current = begun;
                    return Step::go_on(record);
                }
                Err(status) => state.ended.push(Ended {
                    scores: Vec::new(),
                    iterations: 0,
                    status,
                }),
            }
        }
        let best = state.best.as_ref().map_or(0, |best| best.0 as usize);
        Step::finish(record, state.ended[best].status.clone())
    }

    fn output(&mut self, state: &State<C>) -> State<C> {
        let mut state = state.clone();
        if state.best.is_none() {
            let output = self.driver(state.at).output(&state.current);
            state.points = [output.used, output.skipped];
            state.best = Some((state.at, output));
        }
        state
    }
}
