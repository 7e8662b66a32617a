//! Tests of the loop. They check prefixes, resumed runs, budgets, interruption, and the integrity and identity of
//! checkpoints.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jensen_run::{
    Algorithm, Archive, ArchiveError, Budget, Checkpoint, CheckpointError, Control, Evidence,
    Identity, Interrupt, Limit, Observer, Record, RunError, Silent, Snapshot, Status, Step, Store,
    StoreError, run, run_interruptibly,
};
use jensen_testkit::ticking;
use serde_json::json;

/// An algorithm that averages noise. The noise is a hash of the iteration number, as in counter-based random streams.
struct Averager {
    seed: u64,
    stop_after: u64,
}

#[derive(Clone, Debug, PartialEq)]
struct State {
    mean: Vec<f64>,
    count: u64,
}

impl Snapshot for State {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("mean", &self.mean);
        archive.set("count", self.count);
        archive
    }
    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        Ok(Self {
            mean: archive.vec_of("mean", 3)?,
            count: archive.get("count")?,
        })
    }
}

fn noise(seed: u64, iteration: u64, row: u64) -> f64 {
    let mut x = seed ^ iteration.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (row << 32);
    x ^= x >> 33;
    x = x.wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^= x >> 33;
    x as f64 / u64::MAX as f64 - 0.5
}

impl Algorithm for Averager {
    type State = State;
    type Output = Vec<f64>;

    fn init(&mut self) -> Result<State, Status> {
        Ok(State {
            mean: vec![0.0, f64::NAN, f64::NEG_INFINITY],
            count: 0,
        })
    }
    fn step(&mut self, state: &mut State, iteration: u64) -> Step {
        state.count += 1;
        for (row, mean) in state.mean.iter_mut().enumerate() {
            let draw = noise(self.seed, iteration, row as u64);
            if mean.is_finite() {
                *mean += (draw - *mean) / state.count as f64;
            }
        }
        let record = Record::new(iteration)
            .with_elbo(state.mean[0], Some(0.1))
            .with("step", state.mean[1]);
        if iteration == self.stop_after {
            let evidence = Evidence {
                rule: "enough".into(),
                remaining: Some(0.0),
                standard_error: None,
            };
            return Step::finish(record, Status::Converged { evidence });
        }
        Step::go_on(record)
    }
    fn output(&mut self, state: &State) -> Vec<f64> {
        state.mean.clone()
    }
}

fn identity() -> Identity {
    Identity {
        algorithm: "average".into(),
        settings: json!({"window": 3}),
        seed: 7,
        model_hash: "m".into(),
        data_hash: "d".into(),
        simd: "avx2".into(),
    }
}

fn averager(stop_after: u64) -> Averager {
    Averager {
        seed: 7,
        stop_after,
    }
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|x| x.to_bits()).collect()
}

fn stored_run(
    stop_after: u64,
    budget: u64,
    resume: Option<Checkpoint>,
) -> (Vec<Record>, Vec<Vec<u8>>, Vec<f64>, Status) {
    let clock = ticking(0.25);
    let mut records: Vec<Record> = Vec::new();
    let mut store: Vec<Vec<u8>> = Vec::new();
    let mut control = Control::new(Budget::iterations(budget), &clock, &mut records);
    control.store = Some(&mut store);
    control.checkpoint_seconds = 0.0;
    control.resume = resume;
    let outcome = run(&mut averager(stop_after), &identity(), &mut control).unwrap();
    (records, store, outcome.output.unwrap(), outcome.status)
}

#[test]
fn a_short_run_is_a_prefix_of_a_long_one() {
    let (short, ..) = stored_run(u64::MAX, 20, None);
    let (long, ..) = stored_run(u64::MAX, 50, None);
    assert_eq!(short.len(), 20);
    assert_eq!(long.len(), 50);
    assert!(short.iter().zip(&long).all(|(a, b)| a.same_result(b)));
}

#[test]
fn resuming_anywhere_equals_never_stopping() {
    let (whole, _, result, status) = stored_run(40, 100, None);
    let (_, checkpoints, ..) = stored_run(40, 100, None);
    // The run writes one checkpoint after each of the first 39 iterations and one at its end.
    assert_eq!(checkpoints.len(), 40);
    for (i, bytes) in checkpoints.iter().enumerate() {
        let checkpoint = Checkpoint::decode(bytes).unwrap();
        assert_eq!(checkpoint.iteration, i as u64 + 1);
        let (rest, _, resumed, resumed_status) = stored_run(40, 100, Some(checkpoint));
        assert_eq!(bits(&resumed), bits(&result));
        assert_eq!(resumed_status, status);
        assert_eq!(rest.len(), 39 - i);
        assert!(
            rest.iter()
                .zip(&whole[i + 1..])
                .all(|(a, b)| a.same_result(b))
        );
    }
}

#[test]
fn resuming_with_a_larger_budget_goes_on() {
    let (_, checkpoints, _, status) = stored_run(u64::MAX, 5, None);
    assert_eq!(
        status,
        Status::BudgetReached {
            limit: Limit::Iterations(5),
            detail: String::new()
        }
    );
    let checkpoint = Checkpoint::decode(checkpoints.last().unwrap()).unwrap();
    let (records, _, resumed, _) = stored_run(u64::MAX, 9, Some(checkpoint));
    assert_eq!(records.first().unwrap().iteration, 6);
    assert_eq!(bits(&resumed), bits(&stored_run(u64::MAX, 9, None).2));
}

#[test]
fn seconds_and_interruption_stop_between_iterations() {
    let clock = ticking(1.0);
    let mut silent = Silent;
    let budget = Budget {
        max_seconds: Some(30.0),
        ..Budget::iterations(1000)
    };
    let mut control = Control::new(budget, &clock, &mut silent);
    let outcome = run(&mut averager(u64::MAX), &identity(), &mut control).unwrap();
    assert!(matches!(
        outcome.status,
        Status::BudgetReached {
            limit: Limit::Seconds(_),
            ..
        }
    ));
    assert!(outcome.iterations > 3 && outcome.iterations < 30);
    let budget = Budget {
        spent: 20.0,
        ..budget
    };
    let mut control = Control::new(budget, &clock, &mut silent);
    let sooner = run(&mut averager(u64::MAX), &identity(), &mut control).unwrap();
    assert_eq!(sooner.status, outcome.status);
    assert!(sooner.iterations > 0 && sooner.iterations < outcome.iterations / 2);

    struct StopAt<'a>(u64, &'a AtomicBool);
    impl Observer for StopAt<'_> {
        fn record(&mut self, record: &Record) {
            if record.iteration == self.0 {
                self.1.store(true, Ordering::Relaxed);
            }
        }
    }
    let cancel = AtomicBool::new(false);
    let mut observer = StopAt(11, &cancel);
    let mut store: Vec<Vec<u8>> = Vec::new();
    let mut control = Control::new(Budget::iterations(1000), &clock, &mut observer);
    control.cancel = Some(&cancel);
    control.store = Some(&mut store);
    let outcome = run(&mut averager(u64::MAX), &identity(), &mut control).unwrap();
    assert_eq!(outcome.status, Status::Interrupted { at: 11 });
    assert_eq!(Checkpoint::decode(&store[0]).unwrap().iteration, 11);
}

/// An averaging algorithm whose step number `at` runs until it is interrupted.
struct Endless<'a> {
    inner: Averager,
    at: u64,
    interrupt: &'a Interrupt<'a>,
    cancel: Option<&'a AtomicBool>,
    seconds: &'a AtomicU64,
}

impl Algorithm for Endless<'_> {
    type State = State;
    type Output = Vec<f64>;

    fn init(&mut self) -> Result<State, Status> {
        self.inner.init()
    }
    fn step(&mut self, state: &mut State, iteration: u64) -> Step {
        if iteration == self.at {
            state.mean.fill(f64::NAN);
            if let Some(cancel) = self.cancel {
                cancel.store(true, Ordering::Relaxed);
            }
            while !self.interrupt.is_over() {
                self.seconds.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.inner.step(state, iteration)
    }
    fn output(&mut self, state: &State) -> Vec<f64> {
        assert!(!self.interrupt.is_over(), "what is over is the step");
        self.inner.output(state)
    }
}

/// An averaging algorithm whose output takes a hundred seconds unless `is_late` returns true.
struct Slow<'a> {
    inner: Averager,
    interrupt: &'a Interrupt<'a>,
    /// If set, the output cancels the run halfway.
    cancel: Option<&'a AtomicBool>,
    /// The clock reading in tenths of a second.
    tenths: &'a AtomicU64,
}

impl Algorithm for Slow<'_> {
    type State = State;
    type Output = u64;

    fn init(&mut self) -> Result<State, Status> {
        self.inner.init()
    }
    fn step(&mut self, state: &mut State, iteration: u64) -> Step {
        self.inner.step(state, iteration)
    }
    fn output(&mut self, _: &State) -> u64 {
        for piece in 0..1000 {
            if self.interrupt.is_late() {
                return piece;
            }
            if let Some(cancel) = self.cancel.filter(|_| piece == 500) {
                cancel.store(true, Ordering::Relaxed);
            }
            self.tenths.fetch_add(1, Ordering::Relaxed);
        }
        1000
    }
}

/// The run converged, but the computation of its output was interrupted, so its status is that of an interrupted run.
#[test]
fn the_output_of_a_run_that_converged_has_no_more_time_either() {
    for (cancelled, limit) in [(false, None), (true, None), (false, Some(60.0))] {
        let tenths = AtomicU64::new(0);
        let clock = || tenths.load(Ordering::Relaxed) as f64 / 10.0;
        let cancel = AtomicBool::new(false);
        let cancel = cancelled.then_some(&cancel);
        let interrupt = Interrupt::new(cancel, &clock);
        let mut silent = Silent;
        let budget = Budget {
            max_seconds: limit,
            ..Budget::iterations(100)
        };
        let mut control = Control::new(budget, &clock, &mut silent);
        control.cancel = cancel;
        control.partial = true;
        let mut slow = Slow {
            inner: averager(10),
            interrupt: &interrupt,
            cancel,
            tenths: &tenths,
        };
        let ended =
            run_interruptibly(&mut slow, &identity(), &mut control, Some(&interrupt)).unwrap();
        let pieces = ended.output.expect("an output");
        match ended.status {
            Status::Converged { .. } => assert!(!cancelled && limit.is_none() && pieces == 1000),
            Status::Interrupted { at } => assert!(cancelled && at == 10 && pieces < 510),
            Status::BudgetReached { limit: found, .. } => {
                assert!(limit.is_some_and(|limit| found == Limit::Seconds(limit)));
                assert!(pieces < 610, "{pieces}");
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_step_that_is_stopped_within_never_began() {
    let (_, _, whole, _) = stored_run(40, 100, None);
    for (cancelled, at) in [(true, 1), (true, 17), (false, 17)] {
        let seconds = AtomicU64::new(0);
        let clock = || seconds.load(Ordering::Relaxed) as f64;
        let cancel = AtomicBool::new(false);
        let cancel = cancelled.then_some(&cancel);
        let interrupt = Interrupt::new(cancel, &clock);
        let mut records: Vec<Record> = Vec::new();
        let mut store: Vec<Vec<u8>> = Vec::new();
        let budget = Budget {
            max_seconds: (!cancelled).then_some(5000.0),
            ..Budget::iterations(100)
        };
        let mut control = Control::new(budget, &clock, &mut records);
        control.cancel = cancel;
        control.store = Some(&mut store);
        control.checkpoint_seconds = f64::INFINITY;
        let mut endless = Endless {
            inner: averager(40),
            at,
            interrupt: &interrupt,
            cancel,
            seconds: &seconds,
        };
        let stopped =
            run_interruptibly(&mut endless, &identity(), &mut control, Some(&interrupt)).unwrap();
        assert_eq!(stopped.iterations, at - 1);
        match stopped.status {
            Status::Interrupted { at: end } => assert!(cancelled && end == at - 1),
            Status::BudgetReached { limit, .. } => {
                assert!(!cancelled && limit == Limit::Seconds(5000.0));
            }
            other => panic!("{other}"),
        }
        assert_eq!(records.len() as u64, at - 1);
        assert_eq!(store.len(), 1);
        let checkpoint = Checkpoint::decode(&store[0]).unwrap();
        let (_, _, resumed, _) = stored_run(40, 100, Some(checkpoint));
        assert_eq!(bits(&resumed), bits(&whole));
    }
}

#[test]
fn a_failing_store_is_a_note() {
    struct Full;
    impl Store for Full {
        fn save(&mut self, _: &[u8]) -> Result<(), StoreError> {
            Err(StoreError("disk full".into()))
        }
    }
    #[derive(Default)]
    struct Notes(Vec<String>);
    impl Observer for Notes {
        fn note(&mut self, note: &str) {
            self.0.push(note.into());
        }
    }
    let clock = || 0.0;
    let (mut notes, mut full) = (Notes::default(), Full);
    let mut control = Control::new(Budget::iterations(3), &clock, &mut notes);
    control.store = Some(&mut full);
    assert!(run(&mut averager(9), &identity(), &mut control).is_ok());
    assert_eq!(notes.0, ["the checkpoint could not be written: disk full"]);
}

#[test]
fn another_run_is_refused_unless_forced() {
    let (_, checkpoints, ..) = stored_run(u64::MAX, 5, None);
    let checkpoint = Checkpoint::decode(&checkpoints[0]).unwrap();
    let mut other = identity();
    other.seed = 8;
    other.data_hash = "e".into();
    let clock = || 0.0;
    let mut silent = Silent;
    let mut control = Control::new(Budget::iterations(9), &clock, &mut silent);
    control.resume = Some(checkpoint.clone());
    let error = run(&mut averager(9), &other, &mut control).unwrap_err();
    let RunError::Checkpoint(CheckpointError::Mismatch(differences)) = &error else {
        panic!("{error}");
    };
    assert_eq!(differences.len(), 2);
    assert!(error.to_string().contains("seed: stored 7, now 8"));
    control.resume = Some(checkpoint);
    control.force_resume = true;
    assert!(run(&mut averager(9), &other, &mut control).is_ok());
}

#[test]
fn damaged_bytes_are_named_as_such() {
    let (_, checkpoints, ..) = stored_run(u64::MAX, 2, None);
    let good = &checkpoints[0];
    assert_eq!(&Checkpoint::decode(good).unwrap().encode(), good);
    for length in 0..good.len() {
        let error = Checkpoint::decode(&good[..length]).unwrap_err();
        assert!(matches!(error, CheckpointError::Corrupt(_)), "{error}");
    }
    // Trailing blanks in the safetensors header have no meaning. A change of any other byte must be detected.
    let header_end = 8 + u64::from_le_bytes(good[..8].try_into().unwrap()) as usize;
    for position in 0..good.len() {
        if position < header_end && good[position] == b' ' {
            continue;
        }
        let mut bytes = good.clone();
        bytes[position] ^= 1;
        assert!(Checkpoint::decode(&bytes).is_err(), "byte {position}");
    }
}

#[test]
fn another_format_version_is_named() {
    let (_, checkpoints, ..) = stored_run(u64::MAX, 1, None);
    let text = String::from_utf8_lossy(&checkpoints[0]).into_owned();
    assert!(text.contains("{\\\"format\\\":1,"));
    let mut bytes = checkpoints[0].clone();
    let needle = b"\\\"format\\\":1";
    let at = bytes
        .windows(needle.len())
        .position(|w| w == needle)
        .unwrap();
    bytes[at + needle.len() - 1] = b'9';
    assert_eq!(
        Checkpoint::decode(&bytes).unwrap_err(),
        CheckpointError::Format { found: 9 }
    );
}

#[test]
fn a_state_of_another_shape_is_refused() {
    let (_, checkpoints, ..) = stored_run(u64::MAX, 1, None);
    let mut checkpoint = Checkpoint::decode(&checkpoints[0]).unwrap();
    let mut state = Archive::new();
    state.put("mean", &[0.0; 4]);
    state.set("count", 1);
    checkpoint.state = Archive::new();
    checkpoint.state.nest("state", state);
    checkpoint.state.set("ended", None::<Status>);
    let clock = || 0.0;
    let mut silent = Silent;
    let mut control = Control::new(Budget::iterations(9), &clock, &mut silent);
    control.resume = Some(checkpoint);
    let error = run(&mut averager(9), &identity(), &mut control).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the checkpoint does not fit this run: the tensor `mean` has 4 elements, expected 3"
    );
}

#[test]
fn every_status_has_a_text_and_all_but_success_advise() {
    let statuses = [
        Status::BudgetReached {
            limit: Limit::Seconds(2.0),
            detail: String::new(),
        },
        Status::Stalled {
            at: 3,
            reason: "r".into(),
        },
        Status::Diverged {
            at: 0,
            reason: "r".into(),
        },
        Status::Interrupted { at: 4 },
    ];
    for status in statuses {
        assert!(!status.is_converged());
        assert!(!status.advice().is_empty());
        let json = serde_json::to_string(&status).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&json).unwrap(), status);
        assert!(status.to_string().contains("not converged") || status.name() == "diverged");
    }
}
