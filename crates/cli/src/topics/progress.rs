//! The line of progress, and what a run's records say.

use jensen::run::{Progress, Record};
use jensen::topics::Curves;
use serde_json::Value;

use crate::progress::Describe;

/// Points of a curve; more cannot be told apart.
const POINTS: usize = 1000;

/// Sizes of a run.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Documents of a pass.
    pub documents: f64,
    /// Tokens of a pass.
    pub tokens: f64,
    /// Documents of a batch.
    pub batch: f64,
}

impl Sizes {
    /// Batches of a pass.
    fn batches(&self) -> f64 {
        (self.documents / self.batch).ceil().max(1.0)
    }

    /// Passes made after so many iterations.
    fn passes(&self, iteration: u64) -> f64 {
        iteration as f64 / self.batches()
    }
}

/// A number of a record.
pub fn number(record: &Record, name: &str) -> Option<f64> {
    record.fields.get(name).and_then(Value::as_f64)
}

/// The line: share done, documents a second, held-out score, bound, temperature.
pub struct Line {
    sizes: Sizes,
    heldout: Option<f64>,
    bound: Option<f64>,
    temperature: Option<f64>,
}

impl Line {
    /// The line of a run.
    pub fn new(sizes: Sizes) -> Self {
        Self {
            sizes,
            heldout: None,
            bound: None,
            temperature: None,
        }
    }
}

impl Describe for Line {
    fn note(&mut self, record: &Record) {
        self.heldout = number(record, "heldout_log_predictive").or(self.heldout);
        self.bound = record.elbo.or(self.bound);
        self.temperature = number(record, "temperature").or(self.temperature);
    }

    fn text(&self, progress: &Progress<'_>, speed: f64) -> String {
        let iteration = progress.record.iteration;
        let share = 100.0 * iteration as f64 / progress.max_iterations.max(1) as f64;
        let mut text = format!(
            "{share:5.1} %  pass {:.2}  {:.0} documents/s",
            self.sizes.passes(iteration),
            speed * self.sizes.batch.min(self.sizes.documents)
        );
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

/// Gathers what the results say of a run.
#[derive(Debug, Default)]
pub struct Gathered {
    /// Curves for the page.
    pub curves: Curves,
    /// The last bound.
    pub bound: Option<f64>,
    /// Iterations that did nothing but train, and their seconds.
    training: (u64, f64),
    /// Seconds at the last record. The first iteration follows the making of the start and is not timed.
    before: Option<f64>,
}

impl Gathered {
    /// Takes note of a record.
    pub fn add(&mut self, record: &Record, sizes: &Sizes) {
        let pass = sizes.passes(record.iteration);
        let scored = number(record, "heldout_log_predictive");
        if let Some(score) = scored {
            self.curves.heldout.push((pass, score));
        }
        if let Some(temperature) = number(record, "temperature") {
            self.curves.temperature.push((pass, temperature));
        }
        if let Some(bound) = record.elbo {
            self.bound = Some(bound);
            self.curves.bound.push((pass, bound / sizes.tokens));
        }
        if let (None, Some(before)) = (scored, self.before) {
            self.training.0 += 1;
            self.training.1 += record.seconds - before;
        }
        self.before = Some(record.seconds);
    }

    /// Documents a second while nothing but training happened.
    pub fn docs_per_second(&self, sizes: &Sizes) -> Option<f64> {
        let (iterations, seconds) = self.training;
        // Batches that end a pass may be short; over a pass the mean size is exact.
        let documents = iterations as f64 * sizes.documents / sizes.batches();
        (seconds > 0.0).then(|| documents / seconds)
    }

    /// The curves with a bounded number of points.
    pub fn curves(mut self) -> Curves {
        for curve in [
            &mut self.curves.heldout,
            &mut self.curves.temperature,
            &mut self.curves.bound,
        ] {
            let step = curve.len().div_ceil(POINTS).max(1);
            let last = curve.len().saturating_sub(1);
            let mut i = 0;
            curve.retain(|_| {
                i += 1;
                (last - (i - 1)).is_multiple_of(step)
            });
        }
        self.curves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_that_of_training_alone() {
        let sizes = Sizes {
            documents: 250.0,
            tokens: 1e4,
            batch: 100.0,
        };
        let record = |iteration, seconds, score: Option<f64>| {
            let mut record = Record::new(0).with("temperature", 2.0);
            (record.iteration, record.seconds) = (iteration, seconds);
            match score {
                Some(score) => record.with("heldout_log_predictive", score),
                None => record,
            }
        };
        let mut gathered = Gathered::default();
        for record in [
            // The first follows the start, the third is held up by a score.
            record(1, 9.0, None),
            record(2, 10.0, None),
            record(3, 25.0, Some(-7.0)),
            record(4, 25.5, None),
        ] {
            gathered.add(&record, &sizes);
        }
        let speed = gathered.docs_per_second(&sizes).unwrap();
        assert!((speed - 2.0 * (250.0 / 3.0) / 1.5).abs() < 1e-12, "{speed}");
        let curves = gathered.curves();
        assert_eq!(curves.heldout, [(1.0, -7.0)]);
        assert_eq!(curves.temperature.len(), 4);
    }

    #[test]
    fn long_curves_keep_their_last_point() {
        let mut gathered = Gathered::default();
        gathered.curves.bound = (0..2501).map(|i| (f64::from(i), 0.0)).collect();
        let curve = gathered.curves().bound;
        assert!(curve.len() <= POINTS && curve.len() > POINTS / 2);
        assert_eq!(curve.last(), Some(&(2500.0, 0.0)));
    }
}
