//! One line per iteration.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Status;

/// One line of a trace. In JSON, the method's `fields` are on the same level as the fixed fields. Numbers that are not
/// finite are written as `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The step, from 1.
    pub iteration: u64,
    /// Wall-clock seconds since the run began, including earlier sessions of a resumed run.
    pub seconds: f64,
    /// Estimate of the evidence lower bound in nats, if the step computed one.
    pub elbo: Option<f64>,
    /// Monte-Carlo standard error of `elbo`.
    pub elbo_se: Option<f64>,
    /// Evaluations so far, in the method's unit. For black-box methods it is minibatches of 256 gradients or values, or
    /// of 85 Hessian-vector products, which count twice.
    pub oracle_calls: u64,
    /// Further fields of the method.
    #[serde(flatten)]
    pub fields: BTreeMap<String, Value>,
}

impl Record {
    /// Creates a record with only the count of evaluations set.
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

    /// Sets the bound and its standard error.
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

/// The state of a run, for a progress display.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The last record.
    pub record: &'a Record,
    /// The largest iteration number that the budget allows.
    pub max_iterations: u64,
}

/// Watches a run. Every method has a default that does nothing.
pub trait Observer {
    /// Receives one trace line. The loop calls it once per iteration, in order.
    fn record(&mut self, record: &Record) {
        let _ = record;
    }

    /// The loop calls it after [`record`](Self::record). It may draw a progress bar.
    fn progress(&mut self, progress: &Progress<'_>) {
        let _ = progress;
    }

    /// Passes on a remark for the user (a forced resume, a checkpoint that could not be written).
    fn note(&mut self, note: &str) {
        let _ = note;
    }

    /// The run is over.
    fn finished(&mut self, status: &Status) {
        let _ = status;
    }
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}

/// Collects the records.
impl Observer for Vec<Record> {
    fn record(&mut self, record: &Record) {
        self.push(record.clone());
    }
}
