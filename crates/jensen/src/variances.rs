//! The variances of gradient estimators during a fit. They are read from the trace and shown in the report.

use jensen_blackbox::records::RecordEstimator;
use jensen_report::Exhibit;
use jensen_report::figure::{Axis, Chart, Figure, Series};
use jensen_run::Record;

/// The traces of the covariance matrices of several gradient estimators at one iterate, in squared units of the
/// gradient.
#[derive(Clone, Debug, PartialEq)]
pub struct VariancePoint {
    /// The number of the iteration.
    pub iteration: u64,
    /// The variances of each estimator that was analysed.
    pub estimators: Vec<EstimatorVariance>,
}

/// The total variance of an estimator and its two components, each with its standard error.
#[derive(Clone, Debug, PartialEq)]
pub struct EstimatorVariance {
    /// The name of the estimator.
    pub name: String,
    /// The total variance.
    pub total: (f64, f64),
    /// The variance from subsampling the records, with the draws integrated out.
    pub subsampling: (f64, f64),
    /// The variance from the random draws if all records are used.
    pub monte_carlo: (f64, f64),
}

impl VariancePoint {
    /// Returns the variances that a trace line contains, or `None` if it contains no such analysis.
    pub fn of(record: &Record) -> Option<Self> {
        let number = |name: &str| record.fields.get(name).and_then(serde_json::Value::as_f64);
        let part = |estimator: &str, part: &str| {
            let name = format!("variance_{estimator}_{part}");
            let error = number(&format!("{name}_se")).unwrap_or(f64::NAN);
            Some((number(&name)?, error))
        };
        let estimators: Vec<EstimatorVariance> = RecordEstimator::ALL
            .iter()
            .filter_map(|estimator| {
                let name = estimator.name();
                Some(EstimatorVariance {
                    name: name.to_owned(),
                    total: part(name, "total")?,
                    subsampling: part(name, "subsampling")?,
                    monte_carlo: part(name, "monte_carlo")?,
                })
            })
            .collect();
        (!estimators.is_empty()).then_some(Self {
            iteration: record.iteration,
            estimators,
        })
    }
}

fn series(
    points: &[VariancePoint],
    name: &str,
    figure: fn(&EstimatorVariance) -> f64,
) -> Vec<(f64, f64)> {
    let at = |point: &VariancePoint| {
        let found = point.estimators.iter().find(|e| e.name == name)?;
        let value = figure(found);
        // A logarithmic axis can show only positive values.
        (value > 0.0).then_some((point.iteration as f64, value))
    };
    points.iter().filter_map(at).collect()
}

/// Returns a section for the report with a chart of the variances during the run and a table of the last values.
/// Returns `None` if `points` is empty.
pub fn variance_section(points: &[VariancePoint]) -> Option<Exhibit> {
    let last = points.last()?;
    let mut chart = Chart::new("")
        .x(Axis::new("iteration"))
        .y(Axis::new("trace of the covariance").log());
    let bounds = [
        (
            "naive, subsampling only",
            series(points, "naive", |e| e.subsampling.0),
        ),
        (
            "naive, Monte Carlo only",
            series(points, "naive", |e| e.monte_carlo.0),
        ),
    ];
    for (label, line) in bounds {
        chart = chart.series(Series::line(label, line).dashed());
    }
    for estimator in RecordEstimator::ALL {
        let name = estimator.name();
        let line = series(points, name, |e| e.total.0);
        if !line.is_empty() {
            chart = chart.series(Series::line(name, line).marked());
        }
    }
    let shown = |(value, error): (f64, f64)| format!("{value:.3e} ± {error:.1e}");
    let rows = last.estimators.iter().map(|e| {
        vec![
            e.name.clone(),
            shown(e.total),
            shown(e.subsampling),
            shown(e.monte_carlo),
        ]
    });
    Some(Exhibit {
        heading: "Variance of the gradient".to_owned(),
        note: format!(
            "The trace of the covariance of each estimator along the iterates of this fit. The table has two \
             parts of it at iteration {}: the variance with the draws integrated out, and the variance with \
             all records. An estimator that reduces only the noise of the draws stays above the first dashed \
             line, and one that reduces only the noise of subsampling stays above the second.",
            last.iteration
        ),
        figures: vec![(
            Figure::new("").panel(chart),
            "Total variance, solid; the two bounds, dashed.".to_owned(),
        )],
        table: (
            ["estimator", "total", "subsampling only", "Monte Carlo only"]
                .map(str::to_owned)
                .to_vec(),
            rows.collect(),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_shows_what_the_trace_holds() {
        let record = |iteration| {
            let mut record = Record::new(iteration);
            for estimator in ["naive", "joint"] {
                for (part, value) in [("total", 9.0), ("subsampling", 6.0), ("monte_carlo", 2.0)] {
                    let name = format!("variance_{estimator}_{part}");
                    record = record.with(&name, value).with(&format!("{name}_se"), 0.5);
                }
            }
            record
        };
        assert_eq!(VariancePoint::of(&Record::new(3)), None);
        let points: Vec<VariancePoint> = [10, 20]
            .iter()
            .filter_map(|&t| VariancePoint::of(&record(t)))
            .collect();
        assert_eq!(points[1].estimators[1].monte_carlo, (2.0, 0.5));
        let section = variance_section(&points).unwrap();
        assert_eq!(section.table.1.len(), 2);
        assert!(
            section.table.1[1][1].contains("9.000e0"),
            "{:?}",
            section.table
        );
        assert!(section.figures[0].0.to_svg().contains("joint"));
        assert_eq!(variance_section(&[]), None);
    }
}
