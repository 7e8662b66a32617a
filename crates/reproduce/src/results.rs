//! The file `results.json`. This file compares measured numbers with the numbers in the papers.

use jensen::data::{DataError, read_optional, write_atomic_bytes};
use jensen::math::order;
use jensen::math::rng::{Purpose, Stream};
use serde::{Deserialize, Serialize};
use std::path::Path;

const RESAMPLED: Purpose = Purpose::new("bootstrap of quantiles");

/// The number of bootstrap samples. With this number of samples, the relative error of the estimated standard error is
/// 3 %.
const RESAMPLES: usize = 1000;

/// The scale at which an experiment is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// The real data, but with fewer seeds, steps and draws. At this scale all parts together take at most 20 minutes
    /// on two cores.
    Quick,
    /// The number of seeds, steps and draws that the paper uses.
    Paper,
}

impl Scale {
    /// Returns the name of the scale on the command line and in `results.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Paper => "paper",
        }
    }
}

/// A row with one measured number. In JSON, numbers that are absent or not finite are written as `null`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultRow {
    /// The name of the measured quantity. The name is unique among the rows of an experiment at a scale.
    pub what: String,
    /// The number that the paper prints for this quantity, or `None` if it prints none.
    pub paper: Option<f64>,
    /// The measured number, or `None` if the row was not run or has no value. If the number is `None`, `note` contains
    /// the reason.
    pub ours: Option<f64>,
    /// The standard error of the measured number, or `None` if it is unknown.
    pub se: Option<f64>,
    /// The unit of the number, such as `nats`, `seconds` or `oracle calls`.
    pub unit: String,
    /// The scale at which the number was measured.
    pub scale: Scale,
    /// The number of seeds that were used to compute the measured number.
    pub seeds: u64,
    /// Notes on the measurement.
    pub note: String,
}

/// All rows of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The name of the experiment.
    pub experiment: String,
    /// A one-line description of the machine.
    pub machine: String,
    /// The rows of the experiment. Finished rows come first, in the order in which their measurement started. The
    /// finished rows are followed by rows that were not run.
    pub rows: Vec<ResultRow>,
}

impl Results {
    /// Reads a file `results.json`. Returns `None` if the file does not exist.
    ///
    /// # Errors
    /// Fails if the file cannot be read or does not have the expected format.
    pub fn read(path: &Path) -> Result<Option<Self>, DataError> {
        let Some(bytes) = read_optional(path)? else {
            return Ok(None);
        };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| DataError::Invalid {
                message: format!(
                    "`{}` does not hold results of a reproduction ({error}); choose another folder",
                    path.display()
                ),
            })
    }

    /// Writes the file `results.json` atomically.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), DataError> {
        let text = serde_json::to_string_pretty(self).map_err(|error| DataError::Invalid {
            message: format!("cannot write `{}`: {error}", path.display()),
        })?;
        write_atomic_bytes(path, (text + "\n").as_bytes())
    }

    /// Returns the finished row with this name and scale, or `None` if there is none.
    pub fn find(&self, what: &str, scale: Scale) -> Option<&ResultRow> {
        self.rows
            .iter()
            .find(|row| row.what == what && row.scale == scale)
    }

    /// Replaces the row with the same name and scale, or appends the row if there is none.
    pub fn put(&mut self, row: ResultRow) {
        let position = self
            .rows
            .iter_mut()
            .find(|old| old.what == row.what && old.scale == row.scale);
        match position {
            Some(old) => *old = row,
            None => self.rows.push(row),
        }
    }

    /// Removes the row with this name and scale.
    pub fn remove(&mut self, what: &str, scale: Scale) {
        self.rows
            .retain(|row| row.what != what || row.scale != scale);
    }
}

/// The quantity that a row measures, without the measured number.
#[derive(Debug, Clone, PartialEq)]
pub struct What {
    name: String,
    unit: String,
    paper: Option<f64>,
}

impl What {
    /// Creates a quantity with a unit. The name, for example `Dyes: oracle calls of TrustVI`, must be unique within the
    /// experiment.
    pub fn new(name: impl Into<String>, unit: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            unit: unit.into(),
            paper: None,
        }
    }

    /// Sets the number that the paper prints for this quantity.
    pub fn paper(self, figure: f64) -> Self {
        Self {
            paper: Some(figure),
            ..self
        }
    }

    /// Returns the name of the quantity.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the row that contains a measurement of this quantity.
    pub fn measured(self, ours: Ours, scale: Scale) -> ResultRow {
        let finite = |x: f64| x.is_finite().then_some(x);
        ResultRow {
            what: self.name,
            paper: self.paper,
            ours: ours.value.and_then(finite),
            se: ours.se.and_then(finite),
            unit: self.unit,
            scale,
            seeds: ours.seeds,
            note: ours.note,
        }
    }
}

/// A measured number with its standard error and notes.
#[derive(Debug, Clone, PartialEq)]
pub struct Ours {
    value: Option<f64>,
    se: Option<f64>,
    seeds: u64,
    note: String,
}

impl Ours {
    /// Creates a measurement from a single number. A number that is not finite is written as `null` and needs a note
    /// with the reason.
    pub fn value(value: f64) -> Self {
        Self {
            value: Some(value),
            se: None,
            seeds: 1,
            note: String::new(),
        }
    }

    /// Creates a measurement from one number per seed. The measured number is their mean, with the standard error of
    /// the mean.
    pub fn mean_of(figures: &[f64]) -> Self {
        let n = figures.len() as f64;
        let mean = figures.iter().sum::<f64>() / n;
        let squares: f64 = figures.iter().map(|x| (x - mean) * (x - mean)).sum();
        Self {
            value: Some(mean),
            se: (figures.len() > 1).then(|| (squares / (n - 1.0) / n).sqrt()),
            seeds: figures.len() as u64,
            note: String::new(),
        }
    }

    /// Creates a measurement from the number of successes in `of` trials. The standard error is computed from the
    /// posterior under a uniform prior. This standard error is positive even if there are no successes.
    pub fn count(count: usize, of: usize) -> Self {
        let (count, of) = (count as f64, of as f64);
        let p = (count + 1.0) / (of + 2.0);
        Self::value(count).se(of * (p * (1.0 - p) / (of + 3.0)).sqrt())
    }

    /// Creates a measurement with the fraction of successes in `of` trials and a standard error as in
    /// [`count`](Self::count). The fraction is absent if there are no trials.
    pub fn share(count: usize, of: usize) -> Self {
        let counted = Self::count(count, of);
        let scale = |x: Option<f64>| x.map(|x| x / of as f64).filter(|x| x.is_finite());
        Self {
            value: scale(counted.value),
            se: scale(counted.se),
            ..counted
        }
    }

    /// Creates a measurement with a quantile and its bootstrap standard error. The quantile is computed by linear
    /// interpolation.
    pub fn quantile(figures: &[f64], share: f64) -> Self {
        let quantile = |mut figures: Vec<f64>| {
            figures.sort_by(f64::total_cmp);
            order::quantile(&figures, share)
        };
        let value = Self::value(quantile(figures.to_vec()));
        if figures.len() < 2 {
            return value;
        }
        let mut stream = Stream::new(0, RESAMPLED, 0, 0);
        let resampled = (0..RESAMPLES).map(|_| {
            let draw = |_: &f64| figures[stream.below(figures.len() as u64) as usize];
            quantile(figures.iter().map(draw).collect())
        });
        let resampled: Vec<f64> = resampled.collect();
        let spread = Self::mean_of(&resampled).se;
        // The standard error is that of a single bootstrap sample. `mean_of` returns the standard error of the mean of
        // all bootstrap samples.
        match spread.map(|se| se * (RESAMPLES as f64).sqrt()) {
            Some(se) if se.is_finite() => value.se(se),
            _ => value,
        }
    }

    /// Sets the standard error of a median over seeds. The formula assumes normally distributed values. With fewer than
    /// two seeds, the standard error is `None`.
    pub fn median_of(self, figures: &[f64]) -> Self {
        let seeds = figures.len() as u64;
        match Self::mean_of(figures).se.filter(|se| se.is_finite()) {
            Some(se) => self
                .se((std::f64::consts::PI / 2.0).sqrt() * se)
                .seeds(seeds),
            None => self.seeds(seeds),
        }
    }

    /// Creates a measurement without a number. The note contains the reason.
    pub fn none(why: impl Into<String>) -> Self {
        Self {
            value: None,
            se: None,
            seeds: 0,
            note: why.into(),
        }
    }

    /// Sets the standard error of the measured number.
    pub fn se(self, se: f64) -> Self {
        Self {
            se: Some(se),
            ..self
        }
    }

    /// Sets the number of seeds that were used to compute the measured number.
    pub fn seeds(self, seeds: u64) -> Self {
        Self { seeds, ..self }
    }

    /// Sets the note on the measurement.
    pub fn note(self, note: impl Into<String>) -> Self {
        Self {
            note: note.into(),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_the_promised_one() {
        let row = What::new("bound", "nats")
            .paper(-3.5)
            .measured(Ours::mean_of(&[1.0, 2.0, 3.0]), Scale::Quick);
        let results = Results {
            experiment: "x".into(),
            machine: "m".into(),
            rows: vec![row],
        };
        let json = serde_json::to_value(&results).unwrap();
        let expected = serde_json::json!({
            "experiment": "x", "machine": "m",
            "rows": [{"what": "bound", "paper": -3.5, "ours": 2.0, "se": (1.0f64 / 3.0).sqrt(),
                      "unit": "nats", "scale": "quick", "seeds": 3, "note": ""}]
        });
        assert_eq!(json, expected);
        let back: Results = serde_json::from_value(json).unwrap();
        assert_eq!(back, results);
    }

    #[test]
    fn figures_have_standard_errors() {
        // A fraction of one half in 100 trials has a standard error of 0.05. For normally distributed numbers, the
        // standard error of the median is 1.25 times the standard error of the mean.
        let measured = |ours: Ours| What::new("a", "").measured(ours, Scale::Quick);
        let half = measured(Ours::share(50, 100));
        assert!(half.ours == Some(0.5) && (half.se.unwrap() - 0.05).abs() < 0.001);
        let none = measured(Ours::count(0, 10));
        assert!(none.ours == Some(0.0) && none.se.unwrap() > 0.5);
        assert_eq!(measured(Ours::share(0, 0)).ours, None);
        let normal: Vec<f64> = (1..400)
            .map(|i| jensen::math::special::inv_phi(f64::from(i) / 400.0))
            .collect();
        let median = measured(Ours::quantile(&normal, 0.5));
        assert!(median.ours.unwrap().abs() < 1e-9);
        let expected = 1.2533 / 399f64.sqrt();
        assert!((median.se.unwrap() / expected - 1.0).abs() < 0.15);
        let of_seeds = measured(Ours::value(2.0).median_of(&[1.0, 2.0, 3.0]));
        assert!((of_seeds.se.unwrap() - 1.2533 / 3f64.sqrt()).abs() < 1e-4);
        assert_eq!(measured(Ours::value(2.0).median_of(&[2.0])).se, None);
    }

    #[test]
    fn a_figure_that_is_not_finite_is_null() {
        let row = What::new("a", "").measured(Ours::value(f64::NAN).note("diverged"), Scale::Paper);
        assert_eq!((row.ours, row.note.as_str()), (None, "diverged"));
        let row = What::new("a", "").measured(Ours::none("no data"), Scale::Paper);
        assert_eq!((row.ours, row.seeds), (None, 0));
    }

    #[test]
    fn rows_are_known_by_name_and_scale() {
        let row = |ours, scale| What::new("a", "").measured(Ours::value(ours), scale);
        let mut results = Results {
            experiment: "x".into(),
            machine: String::new(),
            rows: Vec::new(),
        };
        results.put(row(1.0, Scale::Quick));
        results.put(row(2.0, Scale::Paper));
        results.put(row(3.0, Scale::Quick));
        assert_eq!(results.find("a", Scale::Quick).unwrap().ours, Some(3.0));
        assert_eq!(results.rows.len(), 2);
        results.remove("a", Scale::Quick);
        assert_eq!(results.find("a", Scale::Quick), None);
        assert_eq!(results.find("a", Scale::Paper).unwrap().ours, Some(2.0));
    }
}
