//! The posterior predictive checks and the leave-one-out cross-validation that a report shows.
//!
//! If the data contain a variable `y`, a generated quantity `y_rep` or `y_pred` with the same shape contains one
//! replicated data set per draw. A generated quantity `log_lik` contains the log likelihood of every observation. The
//! checks follow Gabry, Simpson, Vehtari, Betancourt and Gelman, Visualization in Bayesian workflow, JRSS A 182 (2019).

use jensen_data::{DataSet, predicted};
use jensen_density::VariableKind;
use jensen_math::order::quantile;
use jensen_math::sum::Moments;
use jensen_report::Exhibit;
use jensen_report::figure::{Axis, Chart, Figure, Series};

use crate::Sample;
use crate::compare::LeaveOneOut;
use crate::stan::column_major;

const REPLICATES: usize = 400;

/// The maximum number of observations that a check uses. From a larger data set, the check uses evenly spaced
/// observations.
const OBSERVATIONS: usize = 20_000;

const DRAWN: usize = 400;

/// The maximum number of observations in the leave-one-out results of a report. The command `jensen compare` has no
/// such limit.
const LEFT_OUT: usize = 5_000;

const BARS: usize = 30;

/// The maximum number of distinct values of an integer variable that is treated as a category. A variable with more
/// distinct values is treated as a count, and its check is drawn as a rootogram (Kleiber and Zeileis, The American
/// Statistician 70, 2016).
const ROOTED: usize = 12;

const EQUAL_BARS: usize = 20;

/// The half-width, in standard deviations, of the central interval that contains 90 % of a normal distribution.
const NINETY: f64 = 1.645;

/// The section of a report on predictions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Predictive {
    /// The checks that the section shows.
    pub exhibits: Vec<Exhibit>,
    /// The names of the generated quantities on which the section is based.
    pub variables: Vec<String>,
}

impl Predictive {
    /// Computes the predictive checks of a fit to `data` from its draws. If `weighted` is true, the function applies
    /// importance weights. Set it for draws that come from an approximation.
    pub fn of(sample: &Sample, data: &DataSet, weighted: bool) -> Self {
        let mut found = Self::default();
        let mut first = 0;
        for variable in &sample.variables {
            let columns = first..first + variable.len();
            first = columns.end;
            if variable.kind != VariableKind::Generated || columns.is_empty() {
                continue;
            }
            let exhibit = if variable.name == "log_lik" {
                left_out(sample, columns, weighted)
            } else {
                let observed = predicted(&variable.name).and_then(|name| data.get(name));
                let observed = observed.filter(|value| *value.shape() == *variable.shape);
                observed.and_then(|value| {
                    let replicated = Replicated::of(sample, columns.start, &column_major(value))?;
                    Some(replicated.exhibit(&variable.name))
                })
            };
            if let Some(exhibit) = exhibit {
                found.exhibits.push(exhibit);
                found.variables.push(variable.name.clone());
            }
        }
        found
    }

    /// Adapts the section to draws from the prior. The section then compares data sets that were simulated from the
    /// prior with the observed data. The section omits comparisons that draws from a prior cannot pass.
    #[must_use]
    pub fn of_prior(mut self) -> Self {
        for exhibit in &mut self.exhibits {
            "What does the prior predict?".clone_into(&mut exhibit.heading);
            "Data sets simulated from the prior, with the observed one, which had no part in this fit. A \
             plausible prior includes the data easily; a prior that mostly predicts impossible values is too \
             wide."
                .clone_into(&mut exhibit.note);
            exhibit.figures.truncate(1);
        }
        self
    }
}

struct Replicated {
    observed: Vec<f64>,
    /// The replicated values of each observation in increasing order.
    replicates: Vec<Vec<f64>>,
    integer: bool,
}

impl Replicated {
    /// Returns `None` if there are too few draws or if some values are not finite numbers.
    fn of(sample: &Sample, first: usize, observed: &[f64]) -> Option<Self> {
        let table = &sample.table;
        let draws = table.len().min(REPLICATES);
        let step = observed.len().div_ceil(OBSERVATIONS);
        if draws < 20 || observed.len() < 2 {
            return None;
        }
        let records = || (0..observed.len()).step_by(step);
        let mut replicates = vec![Vec::with_capacity(draws); records().count()];
        for draw in 0..draws {
            let row = table.row(draw * table.len() / draws);
            for (kept, record) in replicates.iter_mut().zip(records()) {
                kept.push(row[first + record]);
            }
        }
        let observed: Vec<f64> = records().map(|record| observed[record]).collect();
        let mut all = replicates.iter().flatten().chain(&observed);
        if !all.all(|x| x.abs() < 1e150) {
            return None;
        }
        let mut all = replicates.iter().flatten().chain(&observed);
        Some(Self {
            integer: all.all(|x| x.fract() == 0.0),
            observed,
            replicates,
        })
    }

    fn draws(&self) -> usize {
        self.replicates[0].len()
    }

    fn set(&self, draw: usize) -> Vec<f64> {
        self.replicates.iter().map(|record| record[draw]).collect()
    }

    fn exhibit(&self, name: &str) -> Exhibit {
        let data = predicted(name).unwrap_or(name);
        let (intervals, within) = self.intervals(data);
        let share = 100.0 * within as f64 / self.observed.len() as f64;
        Exhibit {
            heading: format!("Does the model predict {data}?"),
            note: format!(
                "{name} has data sets simulated from the fitted model. If the model is right, the observed data \
                 resemble them: {share:.0} % of the observations are within the central 90 % of their predictions."
            ),
            figures: vec![
                (
                    self.distribution(data),
                    "Share of the observations by value, with the band that contains 90 % of the replicated \
                     data sets. The axis shows square roots of shares, so that rare values are visible (a \
                     rootogram).".to_owned(),
                ),
                (
                    intervals,
                    "Each observation against the mean of its prediction, with the central 90 % of the predictions.".to_owned(),
                ),
                (
                    self.ranks(),
                    "Rank of each observation among its predictions (probability integral transform). Flat within the band: calibrated. A peak in \
                     the middle: predictions are too wide. Peaks at both ends: too narrow."
                        .to_owned(),
                ),
            ],
            table: self.statistics(),
        }
    }

    fn distribution(&self, data: &str) -> Figure {
        let mut pooled: Vec<f64> = self.replicates.iter().flatten().copied().collect();
        pooled.sort_by(f64::total_cmp);
        let ends = self.observed.iter().fold(
            (quantile(&pooled, 0.001), quantile(&pooled, 0.999)),
            |(low, high), y| (low.min(*y), high.max(*y)),
        );
        // Each bar of the histogram covers the same number of integers.
        let (from, width, bars) = match self.integer {
            true => {
                let width = ((ends.1 - ends.0 + 1.0) / BARS as f64).ceil().max(1.0);
                let bars = ((ends.1 - ends.0 + 1.0) / width).ceil() as usize;
                (ends.0 - 0.5, width, bars)
            }
            false => {
                let bars = BARS.min(2 + 2 * (self.observed.len() as f64).sqrt() as usize);
                let width = (ends.1 - ends.0).max(f64::MIN_POSITIVE) / bars as f64;
                (ends.0, width, bars)
            }
        };
        let root = self.integer && bars >= ROOTED;
        let shares = |set: &[f64]| {
            let mut shares = vec![0.0; bars];
            for x in set {
                let bar = ((x - from) / width).floor();
                if bar >= 0.0 && bar <= bars as f64 {
                    shares[(bar as usize).min(bars - 1)] += 1.0 / set.len() as f64;
                }
            }
            if root {
                shares.iter_mut().for_each(|share| *share = share.sqrt());
            }
            shares
        };
        let sets: Vec<Vec<f64>> = (0..self.draws())
            .map(|draw| shares(&self.set(draw)))
            .collect();
        let at = |bar: usize| from + width * (bar as f64 + 0.5);
        let spread: Vec<[f64; 3]> = (0..bars)
            .map(|bar| {
                let mut found: Vec<f64> = sets.iter().map(|set| set[bar]).collect();
                found.sort_by(f64::total_cmp);
                [0.05, 0.5, 0.95].map(|p| quantile(&found, p))
            })
            .collect();
        let middle = spread.iter().enumerate().map(|(bar, s)| (at(bar), s[1]));
        let band: Vec<(f64, f64)> = spread.iter().map(|s| (s[0], s[2])).collect();
        let own = shares(&self.observed);
        let observed = own.iter().enumerate().map(|(bar, share)| (at(bar), *share));
        let chart = Chart::new("")
            .x(Axis::new(data))
            .y(Axis::new(if root {
                "square root of the share"
            } else {
                "share"
            }))
            .series(Series::line("replicated", middle).band(band))
            .series(Series::line("observed", observed).marked());
        Figure::new("").panel(chart)
    }

    fn intervals(&self, data: &str) -> (Figure, usize) {
        let mut rows: Vec<(f64, f64, f64, f64)> = (self.observed.iter().zip(&self.replicates))
            .map(|(y, replicates)| {
                let mut sorted = replicates.clone();
                sorted.sort_by(f64::total_cmp);
                let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
                (mean, *y, quantile(&sorted, 0.05), quantile(&sorted, 0.95))
            })
            .collect();
        let within = rows
            .iter()
            .filter(|(_, y, low, high)| (low..=high).contains(&y))
            .count();
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        let step = rows.len().div_ceil(DRAWN);
        let rows: Vec<_> = rows.into_iter().step_by(step).collect();
        let line = rows.iter().map(|row| (row.0, row.0));
        let band: Vec<(f64, f64)> = rows.iter().map(|row| (row.2, row.3)).collect();
        let points = rows.iter().map(|row| (row.0, row.1));
        let chart = Chart::new("")
            .x(Axis::new("mean of the prediction"))
            .y(Axis::new(data))
            .series(Series::line("predicted", line).band(band))
            .series(Series::scatter("observed", points).width(2.4).opacity(0.8));
        (Figure::new("").panel(chart), within)
    }

    fn ranks(&self) -> Figure {
        let mut shares = vec![0.0; EQUAL_BARS];
        let count = self.observed.len() as f64;
        for (y, replicates) in self.observed.iter().zip(&self.replicates) {
            let draws = replicates.len() as f64;
            let below = replicates.iter().filter(|x| *x < y).count() as f64 / draws;
            let equal = replicates.iter().filter(|x| *x == y).count() as f64 / draws;
            // Ties, which are frequent among counts, are distributed evenly over the tied ranks.
            let (low, high) = (below, (below + equal).max(below + 1.0 / draws).min(1.0));
            let (low, high) = (low.min(high - 0.5 / draws), high);
            for (bar, share) in shares.iter_mut().enumerate() {
                let (from, to) = (
                    bar as f64 / EQUAL_BARS as f64,
                    (bar + 1) as f64 / EQUAL_BARS as f64,
                );
                *share += (high.min(to) - low.max(from)).max(0.0) / (high - low) / count;
            }
        }
        let even = 1.0 / EQUAL_BARS as f64;
        let error = NINETY * (even * (1.0 - even) / count).sqrt();
        let at = |bar: usize| (bar as f64 + 0.5) / EQUAL_BARS as f64;
        let band = vec![((even - error).max(0.0), even + error); 2];
        let chart = Chart::new("")
            .x(Axis::new("rank among the predictions"))
            .y(Axis::new("share of the observations"))
            .series(Series::line("expected", [(0.0, even), (1.0, even)]).band(band))
            .series(
                Series::line(
                    "observed",
                    shares
                        .into_iter()
                        .enumerate()
                        .map(|(bar, share)| (at(bar), share)),
                )
                .marked(),
            );
        Figure::new("").panel(chart)
    }

    fn statistics(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let sets: Vec<[f64; 4]> = (0..self.draws())
            .map(|draw| statistics(&self.set(draw)))
            .collect();
        let own = statistics(&self.observed);
        let rows = ["mean", "standard deviation", "smallest", "largest"]
            .iter()
            .enumerate();
        let rows = rows.map(|(at, name)| {
            let mut found: Vec<f64> = sets.iter().map(|set| set[at]).collect();
            found.sort_by(f64::total_cmp);
            let at_most = found.partition_point(|x| *x <= own[at]) as f64;
            let below = found.partition_point(|x| *x < own[at]) as f64;
            let above = 1.0 - 0.5 * (at_most + below) / found.len() as f64;
            let [low, middle, high] = [0.05, 0.5, 0.95].map(|p| quantile(&found, p));
            let numbers = [own[at], low, middle, high].map(|x| format!("{x:.4}"));
            let row = std::iter::once((*name).to_owned()).chain(numbers);
            row.chain([format!("{above:.2}")]).collect()
        });
        let heads = [
            "statistic",
            "observed",
            "5 %",
            "50 %",
            "95 %",
            "share above",
        ];
        (heads.map(str::to_owned).to_vec(), rows.collect())
    }
}

fn statistics(set: &[f64]) -> [f64; 4] {
    let moments = Moments::of(set);
    let (mean, variance) = (moments.mean(), moments.variance());
    let (low, high) = set
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
            (low.min(*x), high.max(*x))
        });
    [mean, variance.sqrt(), low, high]
}

fn left_out(sample: &Sample, columns: std::ops::Range<usize>, weighted: bool) -> Option<Exhibit> {
    let table = &sample.table;
    if columns.len() > LEFT_OUT || columns.len() < 2 {
        return None;
    }
    let log_likelihood: Vec<Vec<f64>> = columns.map(|column| table.column(column)).collect();
    let log_weights = match weighted {
        true => table.log_weights(),
        false => vec![0.0; table.len()],
    };
    let loo = LeaveOneOut::of(&log_likelihood, &log_weights, 1.0).ok()?;
    let points = loo
        .khat
        .iter()
        .enumerate()
        .map(|(at, k)| ((at + 1) as f64, *k));
    let limit = Series::line(
        "limit",
        [
            (1.0, loo.khat_limit),
            (loo.khat.len() as f64, loo.khat_limit),
        ],
    );
    let chart = Chart::new("")
        .x(Axis::new("observation"))
        .y(Axis::new("Pareto k̂"))
        .series(Series::scatter("", points).width(2.4))
        .series(limit.dashed().colour(6));
    let doubt = match loo.unreliable() {
        0 => "Every k̂ is within the limit, so the values are reliable.".to_owned(),
        n => format!("{n} observations have a k̂ above the limit, so their values are unreliable."),
    };
    let number = |x: f64| format!("{x:.2}");
    let row = vec![number(loo.elpd), number(loo.elpd_se), number(loo.p_loo)];
    let heads = [
        "expected log predictive density, nats",
        "standard error",
        "effective parameters",
    ];
    Some(Exhibit {
        heading: "How well does the model predict new observations?".to_owned(),
        note: format!("Leave-one-out cross-validation from log_lik, by Pareto smoothed importance sampling. \
                       {doubt}"),
        figures: vec![(
            Figure::new("").panel(chart),
            "Influence of each observation on the posterior: the tail index of the importance weights for its \
             removal.".to_owned(),
        )],
        table: (heads.map(str::to_owned).to_vec(), vec![row]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates observations at the quantiles of the uniform distribution on [0, 1]. The replicates are uniform on [0,
    /// `wide`].
    fn uniform(count: usize, draws: usize, wide: f64) -> Replicated {
        let share = |i: usize, n: usize| (i as f64 + 0.5) / n as f64;
        Replicated {
            observed: (0..count).map(|i| share(i, count)).collect(),
            replicates: vec![
                (0..draws)
                    .map(|i| wide * share(i * 7 % draws, draws))
                    .collect();
                count
            ],
            integer: false,
        }
    }

    #[test]
    fn a_right_model_predicts_nine_of_ten_within_its_intervals() {
        let (_, within) = uniform(200, 10_000, 1.0).intervals("y");
        assert_eq!(within, 180);
        // The replicates cover only a tenth of the observed range, so most observations lie outside their predictive
        // intervals.
        let (_, within) = uniform(200, 10_000, 0.1).intervals("y");
        assert_eq!(within, 18);
    }

    #[test]
    fn counts_are_drawn_as_square_roots_and_categories_as_shares() {
        let counted = |values: f64| Replicated {
            observed: (0..100).map(|i| f64::from(i) % values).collect(),
            replicates: vec![(0..40).map(|i| f64::from(i) % values).collect(); 100],
            integer: true,
        };
        let label = |values: f64| format!("{:?}", counted(values).distribution("y"));
        assert!(label(25.0).contains("square root of the share"));
        assert!(!label(4.0).contains("square root of the share"));
    }

    #[test]
    fn statistics_of_the_data_stand_among_those_of_the_replicates() {
        let (heads, rows) = uniform(200, 100, 1.0).statistics();
        assert_eq!(heads.len(), rows[0].len());
        assert_eq!(rows[0][1], "0.5000");
        let replicated = Replicated {
            observed: vec![0.0, 10.0],
            replicates: vec![vec![1.0; 50], vec![2.0; 50]],
            integer: true,
        };
        let (_, rows) = replicated.statistics();
        // The observed mean is greater than the mean of every replicate, and the observed minimum is less than every
        // replicated minimum.
        assert_eq!([&rows[0][5], &rows[2][5]], ["0.00", "1.00"]);
    }
}
