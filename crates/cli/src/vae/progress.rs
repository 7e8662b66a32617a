//! The progress line of `jensen vae fit`.

use jensen::run::{Progress, Record};
use serde_json::Value;

use crate::progress::Describe;

fn number(record: &Record, name: &str) -> Option<f64> {
    record.fields.get(name).and_then(Value::as_f64)
}

/// The progress line. It contains the epoch, the estimates of the ELBO and the records per second.
pub struct Line {
    epochs: f64,
    /// The number of records before the last iteration, and the number of records in the last iteration.
    seen: (f64, f64),
    bound: Option<f64>,
    validation: Option<f64>,
    temperature: Option<f64>,
}

impl Line {
    pub fn new(epochs: f64) -> Self {
        Self {
            epochs,
            seen: (0.0, 0.0),
            bound: None,
            validation: None,
            temperature: None,
        }
    }
}

impl Describe for Line {
    fn note(&mut self, record: &Record) {
        if let Some(samples) = number(record, "samples") {
            self.seen = (samples, samples - self.seen.0);
        }
        self.bound = number(record, "bound").or(self.bound);
        self.validation = number(record, "validation_bound").or(self.validation);
        self.temperature = number(record, "temperature").or(self.temperature);
    }

    fn text(&self, progress: &Progress<'_>, speed: f64) -> String {
        let passes = number(progress.record, "passes").unwrap_or(0.0);
        let mut text = format!("epoch {passes:.1} of {}", self.epochs);
        if let Some(bound) = self.bound {
            text += &format!("  bound {bound:.2} nats/record");
        }
        if let Some(bound) = self.validation {
            text += &format!("  validation {bound:.2}");
        }
        if let Some(temperature) = self.temperature.filter(|t| *t != 1.0) {
            text += &format!("  T {temperature:.2}");
        }
        text + &format!("  {:.0} records/s", speed * self.seen.1)
    }
}
