//! The curves that describe a run. They are computed from the records of the run.

use jensen_conjugate::documents::Documents;
use jensen_conjugate::lda::LdaSettings;
use jensen_run::Record;
use serde_json::Value;

use super::Curves;
use crate::job;

/// The maximum number of points of a curve. A figure could not show more points separately.
const POINTS: usize = 1000;

/// The numbers of documents and tokens that a run processes in a pass and in a batch.
#[derive(Clone, Copy, Debug)]
pub struct PassSizes {
    /// The number of documents in one pass.
    pub documents: f64,
    /// The number of tokens in one pass.
    pub tokens: f64,
    /// The number of documents in one batch.
    pub batch: f64,
}

impl PassSizes {
    /// Returns the sizes for a run on the given training documents.
    pub fn of(documents: &dyn Documents, settings: &LdaSettings) -> Self {
        Self {
            documents: documents.len() as f64,
            tokens: documents.tokens(),
            batch: settings.batch as f64,
        }
    }

    /// Returns the number of batches in one pass.
    pub fn batches(&self) -> f64 {
        (self.documents / self.batch).ceil().max(1.0)
    }

    /// Returns the number of passes that are completed after `iteration`.
    pub fn passes(&self, iteration: u64) -> f64 {
        iteration as f64 / self.batches()
    }
}

fn number(record: &Record, name: &str) -> Option<f64> {
    record.fields.get(name).and_then(Value::as_f64)
}

/// A collector that receives the records of a run.
#[derive(Clone, Debug)]
pub struct TopicsCourse {
    sizes: PassSizes,
    /// The curves of each number of topics.
    curves: Vec<Curves>,
    /// The number of iterations that consisted only of training, followed by the total time that they took in seconds.
    training: (u64, f64),
    /// The elapsed time in seconds at the last record. The first iteration of a run is not timed, because its time
    /// would include the construction of the starting topics.
    before: Option<f64>,
}

impl job::Course for TopicsCourse {
    fn add(&mut self, record: &Record) {
        let candidate = number(record, "candidate").map_or(0, |candidate| candidate as usize - 1);
        let pass = number(record, "pass").unwrap_or(0.0);
        if self.curves.len() <= candidate {
            self.curves.resize(candidate + 1, Curves::default());
        }
        let curves = &mut self.curves[candidate];
        let scored = number(record, "heldout_log_predictive");
        if let Some(score) = scored {
            curves.heldout.push((pass, score));
        }
        if let Some(temperature) = number(record, "temperature") {
            curves.temperature.push((pass, temperature));
        }
        if let Some(bound) = record.elbo {
            curves.bound.push((pass, bound / self.sizes.tokens));
        }
        if let (None, Some(before)) = (scored, self.before) {
            self.training.0 += 1;
            self.training.1 += record.seconds - before;
        }
        self.before = Some(record.seconds);
    }
}

impl TopicsCourse {
    /// Creates a collector for a run with the given sizes.
    pub fn new(sizes: PassSizes) -> Self {
        Self {
            sizes,
            curves: Vec::new(),
            training: (0, 0.0),
            before: None,
        }
    }

    /// Returns the number of documents that training processes per second. The time for scoring is not included.
    pub fn docs_per_second(&self) -> Option<f64> {
        let (iterations, seconds) = self.training;
        // The last batch of a pass may be smaller than the others, so the mean batch size of a pass is used.
        let documents = iterations as f64 * self.sizes.documents / self.sizes.batches();
        (seconds > 0.0).then(|| documents / seconds)
    }

    /// Returns the curves of the fit with the given index, reduced to a limited number of points.
    pub fn curves(&self, candidate: usize) -> Curves {
        let mut curves = self.curves.get(candidate).cloned().unwrap_or_default();
        for curve in [
            &mut curves.heldout,
            &mut curves.temperature,
            &mut curves.bound,
        ] {
            let step = curve.len().div_ceil(POINTS).max(1);
            let last = curve.len().saturating_sub(1);
            let mut i = 0;
            curve.retain(|_| {
                i += 1;
                (last - (i - 1)).is_multiple_of(step)
            });
        }
        curves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_that_of_training_alone() {
        let sizes = PassSizes {
            documents: 250.0,
            tokens: 1e4,
            batch: 100.0,
        };
        let record = |iteration: u32, seconds, score: Option<f64>| {
            let mut record = Record::new(0).with("temperature", 2.0);
            record = record.with("pass", f64::from(iteration) / 3.0);
            (record.iteration, record.seconds) = (iteration.into(), seconds);
            match score {
                Some(score) => record.with("heldout_log_predictive", score),
                None => record,
            }
        };
        let mut gathered = TopicsCourse::new(sizes);
        for record in [
            // The first record follows the construction of the starting topics, and the third record is delayed by
            // scoring.
            record(1, 9.0, None),
            record(2, 10.0, None),
            record(3, 25.0, Some(-7.0)),
            record(4, 25.5, None),
        ] {
            job::Course::add(&mut gathered, &record);
        }
        let speed = gathered.docs_per_second().unwrap();
        assert!((speed - 2.0 * (250.0 / 3.0) / 1.5).abs() < 1e-12, "{speed}");
        let curves = gathered.curves(0);
        assert_eq!(curves.heldout, [(1.0, -7.0)]);
        assert_eq!(curves.temperature.len(), 4);
    }

    #[test]
    fn long_curves_keep_their_last_point() {
        let mut gathered = TopicsCourse::new(PassSizes {
            documents: 1.0,
            tokens: 1.0,
            batch: 1.0,
        });
        gathered.curves = vec![Curves {
            bound: (0..2501).map(|i| (f64::from(i), 0.0)).collect(),
            ..Curves::default()
        }];
        let curve = gathered.curves(0).bound;
        assert!(curve.len() <= POINTS && curve.len() > POINTS / 2);
        assert_eq!(curve.last(), Some(&(2500.0, 0.0)));
    }
}
