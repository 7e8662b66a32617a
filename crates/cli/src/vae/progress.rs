//! The line of progress, and what a run's records say.

use jensen::neural::{HistoryPoint, VaeCurves};
use jensen::run::{Progress, Record};
use serde_json::Value;

use crate::progress::Describe;

/// Points of a curve; more cannot be told apart.
const POINTS: usize = 1000;

fn number(record: &Record, name: &str) -> Option<f64> {
    record.fields.get(name).and_then(Value::as_f64)
}

/// The line: epoch, bounds, records a second.
pub struct Line {
    epochs: f64,
    per_iteration: f64,
    bound: Option<f64>,
    validation: Option<f64>,
    temperature: Option<f64>,
}

impl Line {
    /// The line of a run of `epochs` passes whose iterations see `per_iteration` records.
    pub fn new(epochs: f64, per_iteration: f64) -> Self {
        Self {
            epochs,
            per_iteration,
            bound: None,
            validation: None,
            temperature: None,
        }
    }
}

impl Describe for Line {
    fn note(&mut self, record: &Record) {
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
        text + &format!("  {:.0} records/s", speed * self.per_iteration)
    }
}

/// Gathers what the results say of a run.
#[derive(Debug, Default)]
pub struct Gathered {
    points: Vec<Point>,
    /// The bound of all records, with the divergence of the weights.
    pub elbo: Option<f64>,
    /// The temperature at the end.
    pub temperature: Option<f64>,
    /// Passes made.
    pub passes: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    samples: f64,
    seconds: f64,
    bound: Option<f64>,
    divergence: Option<f64>,
    validation: Option<f64>,
    temperature: Option<f64>,
}

impl Gathered {
    /// Takes note of a record; one of a step that diverged says nothing of the run.
    pub fn add(&mut self, record: &Record) {
        let Some(samples) = number(record, "samples") else {
            return;
        };
        self.elbo = record.elbo.or(self.elbo);
        self.passes = number(record, "passes").unwrap_or(self.passes);
        self.temperature = number(record, "temperature").or(self.temperature);
        self.points.push(Point {
            samples,
            seconds: record.seconds,
            bound: number(record, "bound"),
            divergence: number(record, "divergence"),
            validation: number(record, "validation_bound"),
            temperature: self.temperature,
        });
    }

    /// Records seen.
    pub fn samples(&self) -> f64 {
        self.points.last().map_or(0.0, |point| point.samples)
    }

    /// Records a second. The first iteration follows the making of the start and counts only when it is alone.
    pub fn speed(&self) -> Option<f64> {
        let last = self.points.last()?;
        let (samples, seconds) = match self.points.first() {
            Some(first) if self.points.len() > 1 => {
                (last.samples - first.samples, last.seconds - first.seconds)
            }
            _ => (last.samples, last.seconds),
        };
        (seconds > 0.0).then(|| samples / seconds)
    }

    /// The points of curves: a bounded number, the last among them.
    fn thinned(&self) -> impl Iterator<Item = Point> {
        let step = self.points.len().div_ceil(POINTS).max(1);
        let last = self.points.len().saturating_sub(1);
        let points = self.points.iter().enumerate();
        points
            .filter(move |(i, _)| (last - i).is_multiple_of(step))
            .map(|(_, point)| *point)
    }

    /// The bound along the run.
    pub fn history(&self) -> Vec<HistoryPoint> {
        let point = |p: Point| HistoryPoint {
            samples: p.samples,
            bound: p.bound,
            validation_bound: p.validation,
        };
        self.thinned().map(point).collect()
    }

    /// Curves for the page.
    pub fn curves(&self) -> VaeCurves {
        let points: Vec<Point> = self.thinned().collect();
        let curve = |value: fn(&Point) -> Option<f64>| -> Vec<(f64, f64)> {
            let points = points.iter();
            points
                .filter_map(|p| Some((p.samples, value(p)?)))
                .collect()
        };
        VaeCurves {
            bound: curve(|p| p.bound),
            validation: curve(|p| p.validation),
            divergence: curve(|p| p.divergence),
            temperature: curve(|p| p.temperature),
            throughput: points
                .windows(2)
                .filter(|pair| pair[1].seconds > pair[0].seconds)
                .map(|pair| {
                    let (a, b) = (pair[0], pair[1]);
                    (b.samples, (b.samples - a.samples) / (b.seconds - a.seconds))
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(iteration: u32, seconds: f64) -> Record {
        let mut record = Record::new(0)
            .with("samples", 100.0 * f64::from(iteration))
            .with("passes", f64::from(iteration))
            .with("bound", -f64::from(iteration));
        (record.iteration, record.seconds) = (u64::from(iteration), seconds);
        record
    }

    #[test]
    fn speed_leaves_the_start_out() {
        let mut gathered = Gathered::default();
        gathered.add(&record(1, 9.0));
        assert_eq!(gathered.speed(), Some(100.0 / 9.0));
        gathered.add(&record(2, 10.0));
        gathered.add(&record(3, 11.0));
        gathered.add(&Record::new(4));
        assert_eq!(gathered.speed(), Some(100.0));
        assert_eq!((gathered.samples(), gathered.passes), (300.0, 3.0));
        assert_eq!(
            gathered.curves().throughput,
            [(200.0, 100.0), (300.0, 100.0)]
        );
    }

    #[test]
    fn long_histories_keep_their_last_point() {
        let mut gathered = Gathered::default();
        for i in 1..=2501 {
            gathered.add(&record(i, f64::from(i)));
        }
        let history = gathered.history();
        assert!(history.len() <= POINTS && history.len() > POINTS / 2);
        assert_eq!(history.last().unwrap().bound, Some(-2501.0));
    }
}
