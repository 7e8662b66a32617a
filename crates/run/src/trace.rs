//! The trace of a run, with one line per iteration.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Status;

/// One line of a trace. In JSON, the method's `fields` are on the same level as the fixed fields. Numbers that are not
/// finite are written as `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The number of the step. The first step is 1.
    pub iteration: u64,
    /// The wall-clock seconds since the run began, including earlier sessions of a resumed run.
    pub seconds: f64,
    /// The estimated ELBO in nats, if the step computed it.
    pub elbo: Option<f64>,
    /// The Monte-Carlo standard error of `elbo`.
    pub elbo_se: Option<f64>,
    /// The number of evaluations so far, in the unit of the method. For black-box methods the unit is the oracle call:
    /// a minibatch of 256 gradients or values, or of 85 Hessian-vector products, which count twice.
    pub oracle_calls: u64,
    /// The fields that only this method has.
    #[serde(flatten)]
    pub fields: BTreeMap<String, Value>,
}

impl Record {
    /// Returns a record with only the number of evaluations set.
    pub fn new(oracle_calls: u64) -> Self {
        Self {
            oracle_calls,
            ..Self::default()
        }
    }

    /// Adds a number, or `null` if the number is not finite.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64) -> Self {
        let value = serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number);
        self.fields.insert(name.to_owned(), value);
        self
    }

    /// Adds a word.
    #[must_use]
    pub fn with_text(mut self, name: &str, value: &str) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// Sets the ELBO and its standard error.
    #[must_use]
    pub fn with_elbo(mut self, elbo: f64, standard_error: Option<f64>) -> Self {
        self.elbo = Some(elbo);
        self.elbo_se = standard_error;
        self
    }

    /// Returns whether two records agree in everything but `seconds`, bit for bit.
    pub fn same_result(&self, other: &Self) -> bool {
        let bits = |x: Option<f64>| x.map(f64::to_bits);
        self.iteration == other.iteration
            && bits(self.elbo) == bits(other.elbo)
            && bits(self.elbo_se) == bits(other.elbo_se)
            && self.oracle_calls == other.oracle_calls
            && self.fields == other.fields
    }
}

/// The state of a run, for a progress bar.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The last trace line.
    pub record: &'a Record,
    /// The largest iteration number that the budget allows.
    pub max_iterations: u64,
}

/// An observer of a run. The default methods do nothing.
pub trait Observer {
    /// Receives a trace line. The loop calls this method once per iteration, in order.
    fn record(&mut self, record: &Record) {
        let _ = record;
    }

    /// Receives the progress. The loop calls this method after [`record`](Self::record).
    fn progress(&mut self, progress: &Progress<'_>) {
        let _ = progress;
    }

    /// Receives a note for the user, for example about a forced resume or a checkpoint that could not be written.
    fn note(&mut self, note: &str) {
        let _ = note;
    }

    /// Receives the status at the end of the run.
    fn finished(&mut self, status: &Status) {
        let _ = status;
    }
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}

impl Observer for Vec<Record> {
    fn record(&mut self, record: &Record) {
        self.push(record.clone());
    }
}
