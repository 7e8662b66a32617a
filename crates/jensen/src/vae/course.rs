//! The curves that describe a run. They are computed from the records of the run.

use jensen_run::Record;
use serde_json::Value;

use super::{TrainingPoint, VaeCurves};
use crate::job;

/// The maximum number of points of a curve. A figure could not show more points separately.
const POINTS: usize = 1000;

fn number(record: &Record, name: &str) -> Option<f64> {
    record.fields.get(name).and_then(Value::as_f64)
}

/// A collector that receives the records of a run.
#[derive(Clone, Debug, Default)]
pub struct VaeCourse {
    points: Vec<Point>,
    temperature: Option<f64>,
    /// The number of completed passes.
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

impl job::Course for VaeCourse {
    /// Adds a record, unless it belongs to a step that diverged.
    fn add(&mut self, record: &Record) {
        let Some(samples) = number(record, "samples") else {
            return;
        };
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
}

impl VaeCourse {
    /// Returns the number of training records that were processed.
    pub fn samples(&self) -> f64 {
        self.points.last().map_or(0.0, |point| point.samples)
    }

    /// Returns the number of training records that were processed per second. The time of the first iteration includes
    /// the setup, so this iteration is used only if the run has no other iteration.
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

    fn thinned(&self) -> impl Iterator<Item = Point> {
        let step = self.points.len().div_ceil(POINTS).max(1);
        let last = self.points.len().saturating_sub(1);
        let points = self.points.iter().enumerate();
        points
            .filter(move |(i, _)| (last - i).is_multiple_of(step))
            .map(|(_, point)| *point)
    }

    /// Returns the values of the ELBO during the run.
    pub fn history(&self) -> Vec<TrainingPoint> {
        let point = |p: Point| TrainingPoint {
            samples: p.samples,
            bound: p.bound,
            validation_bound: p.validation,
        };
        self.thinned().map(point).collect()
    }

    /// Returns the curves that the report shows.
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
    use crate::job::Course;

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
        let mut gathered = VaeCourse::default();
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
        let mut gathered = VaeCourse::default();
        for i in 1..=2501 {
            gathered.add(&record(i, f64::from(i)));
        }
        let history = gathered.history();
        assert!(history.len() <= POINTS && history.len() > POINTS / 2);
        assert_eq!(history.last().unwrap().bound, Some(-2501.0));
    }
}
