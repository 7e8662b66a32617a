//! The loop that runs an [`Algorithm`] under a budget.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::archive::ArchiveError;
use crate::{
    Algorithm, Archive, Checkpoint, CheckpointError, Identity, Interrupt, Limit, Observer,
    Progress, Snapshot, Status,
};

/// The limits on the iterations and the time of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// The maximum number of iterations, including the iterations before a resume.
    pub max_iterations: u64,
    /// The maximum wall-clock time in seconds, including the time before a resume. The loop checks this limit between
    /// iterations, and also within iterations if an [`Interrupt`] is used.
    pub max_seconds: Option<f64>,
    /// The time in seconds that had been used before the run began. This time counts towards the time limit.
    pub spent: f64,
}

impl Budget {
    /// Returns a budget that limits the number of iterations but not the time.
    pub fn iterations(max_iterations: u64) -> Self {
        Self {
            max_iterations,
            max_seconds: None,
            spent: 0.0,
        }
    }

    /// Returns whether the time limit had been reached before the run began.
    pub fn is_spent(&self) -> bool {
        self.left().is_some_and(|left| left <= 0.0)
    }

    /// Returns the time in seconds that remains when the run begins, or `None` if the time is not limited.
    pub fn left(&self) -> Option<f64> {
        self.max_seconds.map(|limit| limit - self.spent)
    }
}

/// A wall clock.
pub trait Clock: Sync {
    /// Returns the number of seconds since an arbitrary fixed moment. The readings of the clock never decrease.
    fn seconds(&self) -> f64;
}

impl<F: Fn() -> f64 + Sync> Clock for F {
    fn seconds(&self) -> f64 {
        self()
    }
}

/// The error returned if a checkpoint could not be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError(pub String);

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StoreError {}

/// The storage to which a run writes its checkpoints.
pub trait Store {
    /// Atomically replaces the previously stored checkpoint.
    ///
    /// # Errors
    /// Fails if the checkpoint cannot be stored. After such a failure, the loop informs the observer and continues the
    /// run.
    fn save(&mut self, bytes: &[u8]) -> Result<(), StoreError>;
}

impl Store for Vec<Vec<u8>> {
    fn save(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.push(bytes.to_vec());
        Ok(())
    }
}

/// The maximum fraction of the run time that the loop may spend on copying the state. The loop needs a copy of the
/// state to discard an interrupted step.
const COPYING: f64 = 0.01;

/// The budget of a run and the services that the caller provides to it.
pub struct Control<'a> {
    /// The budget of the run.
    pub budget: Budget,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// A flag that another thread sets to stop the run, for example when the user presses Ctrl-C. The run stops within
    /// the current iteration or after it, and writes a checkpoint.
    pub cancel: Option<&'a AtomicBool>,
    /// Whether a cancelled run also computes its output. This computation may take a long time.
    pub partial: bool,
    /// The observer of the run.
    pub observer: &'a mut dyn Observer,
    /// The storage for checkpoints, or `None` if the run stores no checkpoints.
    pub store: Option<&'a mut dyn Store>,
    /// The time between two checkpoints in seconds. If it is 0, the run writes a checkpoint after every iteration. The
    /// run always writes a last checkpoint at its end.
    pub checkpoint_seconds: f64,
    /// The stored run from which to resume, or `None` for a new run.
    pub resume: Option<Checkpoint>,
    /// Whether to resume even if the checkpoint belongs to a run with another identity.
    pub force_resume: bool,
}

impl<'a> Control<'a> {
    /// Returns a control with `budget` that neither stores checkpoints nor can be cancelled.
    pub fn new(budget: Budget, clock: &'a dyn Clock, observer: &'a mut dyn Observer) -> Self {
        Self {
            budget,
            clock,
            cancel: None,
            partial: true,
            observer,
            store: None,
            checkpoint_seconds: 30.0,
            resume: None,
            force_resume: false,
        }
    }
}

/// The output of a run and the way in which the run ended.
#[derive(Clone, Debug)]
pub struct Outcome<T> {
    /// The output of the algorithm. The output is `None` if the run could not start, or if the run was cancelled and
    /// [`partial`](Control::partial) is false.
    pub output: Option<T>,
    /// The status at the end of the run.
    pub status: Status,
    /// The number of finished iterations.
    pub iterations: u64,
    /// The wall-clock time in seconds, including the time before a resume.
    pub seconds: f64,
}

/// The reason why a run could not be resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// The checkpoint belongs to another run.
    Checkpoint(CheckpointError),
    /// The stored state cannot be restored by the algorithm.
    State(ArchiveError),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checkpoint(error) => error.fmt(f),
            Self::State(error) => write!(f, "the checkpoint does not fit this run: {error}"),
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Checkpoint(error) => error.source(),
            Self::State(error) => Some(error),
        }
    }
}

/// Runs an algorithm until a step returns a status, the budget is exhausted or the caller cancels the run.
///
/// In each iteration the loop performs a step, passes its record and the progress to the observer, and stores a
/// checkpoint if one is due. At the end of the run, the loop stores a last checkpoint before it computes the output.
/// The loop checks the cancellation flag and the budget before each step. A finished run that is resumed therefore
/// performs no further steps.
///
/// # Errors
/// A resumed run fails if the checkpoint belongs to another run or if the algorithm cannot restore the stored state. A
/// new run never fails.
pub fn run<A: Algorithm>(
    algorithm: &mut A,
    identity: &Identity,
    control: &mut Control<'_>,
) -> Result<Outcome<A::Output>, RunError> {
    run_interruptibly(algorithm, identity, control, None)
}

/// The extension of the time limit for computing the initial state, in seconds. A run that is interrupted before it has
/// a state has no result.
const BEGINNING: f64 = 0.5;

fn begin<A: Algorithm>(
    algorithm: &mut A,
    control: &Control<'_>,
    interrupt: Option<&Interrupt<'_>>,
    start: f64,
) -> Result<A::State, Status> {
    if let Some(interrupt) = interrupt {
        let left = control.budget.left();
        interrupt.arm(left.map_or(f64::INFINITY, |left| start + left.max(0.0) + BEGINNING));
    }
    let state = algorithm.init();
    if !interrupt.is_some_and(Interrupt::disarm) {
        return state;
    }
    Err(ended_from_outside(control, 0))
}

fn ended_from_outside(control: &Control<'_>, at: u64) -> Status {
    let cancelled = control.cancel.is_some_and(|c| c.load(Ordering::Relaxed));
    match control.budget.max_seconds.filter(|_| !cancelled) {
        Some(limit) => Status::BudgetReached {
            limit: Limit::Seconds(limit),
            detail: String::new(),
        },
        None => Status::Interrupted { at },
    }
}

fn stopped(control: &Control<'_>, iteration: u64, seconds: impl Fn() -> f64) -> Option<Status> {
    if control.cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
        return Some(Status::Interrupted { at: iteration });
    }
    let Budget {
        max_iterations,
        max_seconds,
        ..
    } = control.budget;
    let limit = match max_seconds {
        _ if iteration >= max_iterations => Limit::Iterations(max_iterations),
        Some(limit) if seconds() >= limit => Limit::Seconds(limit),
        _ => return None,
    };
    Some(Status::BudgetReached {
        limit,
        detail: String::new(),
    })
}

/// Runs an algorithm like [`run`], but can also interrupt a step before it is complete. The algorithm must use an
/// [`Interrupt`] with the same flag and the same clock. An interrupted step has no effect on the state.
///
/// The function copies the state before each step. If copying takes too long, the function copies the state only before
/// some of the steps. A step without a copy is always completed.
///
/// # Errors
/// Fails under the same conditions as [`run`].
pub fn run_interruptibly<A: Algorithm>(
    algorithm: &mut A,
    identity: &Identity,
    control: &mut Control<'_>,
    interrupt: Option<&Interrupt<'_>>,
) -> Result<Outcome<A::Output>, RunError> {
    let start = control.clock.seconds();
    let (mut state, mut iteration, before, mut ended) = match control.resume.take() {
        Some(checkpoint) => {
            let differences = checkpoint
                .accept(identity, control.force_resume)
                .map_err(RunError::Checkpoint)?;
            for difference in differences {
                control
                    .observer
                    .note(&format!("resumed in spite of a difference: {difference}"));
            }
            let state =
                A::State::restore(&checkpoint.state.nested("state")).map_err(RunError::State)?;
            let ended = checkpoint.state.get("ended").map_err(RunError::State)?;
            (state, checkpoint.iteration, checkpoint.seconds, ended)
        }
        None => match begin(algorithm, control, interrupt, start) {
            Ok(state) => (state, 0, 0.0, None),
            Err(status) => {
                control.observer.finished(&status);
                return Ok(Outcome {
                    output: None,
                    status,
                    iterations: 0,
                    seconds: control.clock.seconds() - start,
                });
            }
        },
    };
    let elapsed = |clock: &dyn Clock| before + (clock.seconds() - start);
    let mut last_save = control.clock.seconds();
    let mut copying = 0.0;
    let mut status = loop {
        if let Some(status) = ended.clone() {
            break status;
        }
        let spent = || elapsed(control.clock) + control.budget.spent;
        if let Some(status) = stopped(control, iteration, spent) {
            break status;
        }
        let mut kept = None;
        if let Some(interrupt) = interrupt.filter(|interrupt| interrupt.within_steps) {
            let now = control.clock.seconds();
            if copying <= COPYING * (now - start) {
                kept = Some(state.save());
                copying += control.clock.seconds() - now;
                let left = control.budget.left().unwrap_or(f64::INFINITY);
                interrupt.arm(start + (left - before));
            }
        }
        let mut step = algorithm.step(&mut state, iteration + 1);
        let vain = interrupt.is_some_and(Interrupt::disarm);
        if let Some(kept) = kept.filter(|_| vain) {
            state = A::State::restore(&kept).map_err(RunError::State)?;
            continue;
        }
        if let Some(Status::Interrupted { .. }) = step.status {
            // The algorithm reports that it could not run the step. The step has not changed the state.
            break Status::Interrupted { at: iteration };
        }
        iteration += 1;
        step.record.iteration = iteration;
        step.record.seconds = elapsed(control.clock);
        ended = step.status;
        control.observer.record(&step.record);
        control.observer.progress(&Progress {
            record: &step.record,
            max_iterations: control.budget.max_iterations,
        });
        let now = control.clock.seconds();
        if ended.is_none() && now - last_save >= control.checkpoint_seconds {
            save(control, identity, &state, iteration, before, start, &ended);
            last_save = now;
        }
    };
    save(control, identity, &state, iteration, before, start, &ended);
    let wanted = control.partial || !matches!(status, Status::Interrupted { .. });
    match interrupt {
        Some(interrupt) if status.is_from_outside() => interrupt.hurry(),
        Some(interrupt) => {
            let left = control.budget.left().unwrap_or(f64::INFINITY);
            interrupt.end(start + (left - before));
        }
        None => {}
    }
    let output = wanted.then(|| algorithm.output(&state));
    // If the computation of the output was cut short, the run has the incomplete output of an interrupted run and
    // therefore receives the status of an interrupted run.
    if interrupt.is_some_and(Interrupt::is_cut) && !status.is_from_outside() {
        status = ended_from_outside(control, iteration);
    }
    control.observer.finished(&status);
    Ok(Outcome {
        output,
        status,
        iterations: iteration,
        seconds: elapsed(control.clock),
    })
}

/// Stores a checkpoint if there is a store. If the checkpoint cannot be stored, the function passes a note to the
/// observer, and the run continues.
fn save<S: Snapshot>(
    control: &mut Control<'_>,
    identity: &Identity,
    state: &S,
    iteration: u64,
    before: f64,
    start: f64,
    ended: &Option<Status>,
) {
    let Some(store) = control.store.as_deref_mut() else {
        return;
    };
    let mut archive = Archive::new();
    archive.nest("state", state.save());
    archive.set("ended", ended);
    let checkpoint = Checkpoint {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        identity: identity.clone(),
        iteration,
        seconds: before + (control.clock.seconds() - start),
        state: archive,
    };
    if let Err(error) = store.save(&checkpoint.encode()) {
        control
            .observer
            .note(&format!("the checkpoint could not be written: {error}"));
    }
}
