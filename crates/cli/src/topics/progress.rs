//! The progress line of commands that fit topics.

use jensen::run::{Progress, Record};
use jensen::topics::PassSizes;
use serde_json::Value;

use crate::progress::Describe;

fn number(record: &Record, name: &str) -> Option<f64> {
    record.fields.get(name).and_then(Value::as_f64)
}

/// The progress line. It contains the finished fraction, the documents per second, the held-out score, the ELBO and the
/// temperature.
pub struct Line {
    sizes: PassSizes,
    heldout: Option<f64>,
    bound: Option<f64>,
    temperature: Option<f64>,
    candidate: Option<f64>,
    pass: f64,
}

impl Line {
    pub fn new(sizes: PassSizes) -> Self {
        Self {
            sizes,
            heldout: None,
            bound: None,
            temperature: None,
            candidate: None,
            pass: 0.0,
        }
    }
}

impl Describe for Line {
    fn note(&mut self, record: &Record) {
        self.heldout = number(record, "heldout_log_predictive").or(self.heldout);
        self.bound = record.elbo.or(self.bound);
        self.temperature = number(record, "temperature").or(self.temperature);
        self.candidate = number(record, "candidate");
        self.pass = number(record, "pass").unwrap_or(self.pass);
    }

    fn text(&self, progress: &Progress<'_>, speed: f64) -> String {
        let iteration = progress.record.iteration;
        let share = 100.0 * iteration as f64 / progress.max_iterations.max(1) as f64;
        let mut text = format!(
            "{share:5.1} %  pass {:.2}  {:.0} documents/s",
            self.pass,
            speed * self.sizes.batch.min(self.sizes.documents)
        );
        if let Some(candidate) = self.candidate {
            text += &format!("  fit {candidate}");
        }
        if let Some(score) = self.heldout {
            text += &format!("  held out {score:.3} nats/word");
        }
        if let Some(bound) = self.bound {
            text += &format!("  ELBO {:.3} nats/token", bound / self.sizes.tokens);
        }
        if let Some(temperature) = self.temperature.filter(|t| *t != 1.0) {
            text += &format!("  T {temperature:.2}");
        }
        text
    }
}
