//! The trace of a run. It has one line per iteration.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Status;

/// One line of a trace. In JSON, the entries of `fields` appear on the same level as the other fields, and numbers that
/// are not finite are written as `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The number of the iteration. The first iteration has number 1.
    pub iteration: u64,
    /// The wall-clock time in seconds since the beginning of the run, including earlier sessions of a resumed run.
    pub seconds: f64,
    /// The estimated ELBO in nats, or `None` if this iteration did not compute it.
    pub elbo: Option<f64>,
    /// The Monte Carlo standard error of `elbo`.
    pub elbo_se: Option<f64>,
    /// The number of evaluations so far, in a unit that depends on the method. Black-box methods count oracle calls. A
    /// minibatch of 256 gradients or values counts as one oracle call, and a minibatch of 85 Hessian-vector products
    /// counts as two.
    pub oracle_calls: u64,
    /// Additional fields that only this method reports.
    #[serde(flatten)]
    pub fields: BTreeMap<String, Value>,
}

impl Record {
    /// Returns a record in which only the number of evaluations is set.
    pub fn new(oracle_calls: u64) -> Self {
        Self {
            oracle_calls,
            ..Self::default()
        }
    }

    /// Adds the field `name` with a number. A number that is not finite is stored as `null`.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64) -> Self {
        let value = serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number);
        self.fields.insert(name.to_owned(), value);
        self
    }

    /// Adds the field `name` with a text.
    #[must_use]
    pub fn with_text(mut self, name: &str, value: &str) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// Sets the ELBO and its Monte Carlo standard error.
    #[must_use]
    pub fn with_elbo(mut self, elbo: f64, standard_error: Option<f64>) -> Self {
        self.elbo = Some(elbo);
        self.elbo_se = standard_error;
        self
    }

    /// Returns whether two records are bitwise identical in all fields except `seconds`.
    pub fn same_result(&self, other: &Self) -> bool {
        let bits = |x: Option<f64>| x.map(f64::to_bits);
        self.iteration == other.iteration
            && bits(self.elbo) == bits(other.elbo)
            && bits(self.elbo_se) == bits(other.elbo_se)
            && self.oracle_calls == other.oracle_calls
            && self.fields == other.fields
    }
}

/// The progress of a run, in the form that a progress bar displays.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The trace line of the last finished iteration.
    pub record: &'a Record,
    /// The maximum number of iterations that the budget allows.
    pub max_iterations: u64,
}

/// An observer that receives the events of a run. The default implementations of the methods do nothing.
pub trait Observer {
    /// Receives the trace line of an iteration. The loop calls this method once per iteration, in order.
    fn record(&mut self, record: &Record) {
        let _ = record;
    }

    /// Receives the progress of the run. The loop calls this method after [`record`](Self::record).
    fn progress(&mut self, progress: &Progress<'_>) {
        let _ = progress;
    }

    /// Receives a note for the user, for example that a checkpoint could not be written or that a resume was forced.
    fn note(&mut self, note: &str) {
        let _ = note;
    }

    /// Receives the status at the end of the run.
    fn finished(&mut self, status: &Status) {
        let _ = status;
    }
}

/// An observer that ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}

impl Observer for Vec<Record> {
    fn record(&mut self, record: &Record) {
        self.push(record.clone());
    }
}
