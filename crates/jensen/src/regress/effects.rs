//! The effects of columns on the expected response, as curves for the population and as averages over rows.

use std::path::Path;

use jensen_data::{Artefact, DataSet, DrawsTable, read_draws_csv};
use jensen_math::order::quantile;
use jensen_regress::{Curve, Learnt, contrasts};
use jensen_report::Exhibit;
use jensen_report::figure::{Axis, Chart, Figure, Series};
use serde::{Deserialize, Serialize};

use super::{Frame, Kept, Request};
use crate::program::StoredFit;
use crate::stan::{Build, Halt};
use crate::{Error, Generator, Save};

/// The maximum number of rows. The draws for more rows would take too much memory.
const ROWS: usize = 4096;

const DRAWN: usize = 24;

/// The curves of a regression, with the program that evaluates the expected response at their points.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeptCurves {
    curves: Vec<Curve>,
    categories: Vec<String>,
    program: String,
    data: String,
}

impl KeptCurves {
    /// Returns `None` if a formula is undefined at the centre of its columns. An example is the logarithm of a column
    /// with a negative centre.
    pub(super) fn of(
        request: &Request,
        learnt: &Learnt,
        frame: &Frame,
        fitted: &DataSet,
    ) -> Option<Self> {
        let (curves, grid) = jensen_regress::curves(request, frame).ok()?;
        let rows = jensen_regress::Regression::for_rows(request, learnt, &grid).ok()?;
        if curves.is_empty() || rows.rows.len() < grid.rows() {
            return None;
        }
        let rows = rows.of_population();
        let made = jensen_regress::predictions(&rows, fitted).ok()?;
        Some(Self {
            curves,
            categories: rows.observed.categories,
            program: made.text,
            data: made.data.to_json(),
        })
    }
}

/// The posterior summary of an effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EffectSummary {
    /// The posterior mean.
    pub mean: f64,
    /// The posterior standard deviation.
    pub sd: f64,
    /// The central 90 % posterior interval.
    pub interval: [f64; 2],
}

impl EffectSummary {
    fn of(mut draws: Vec<f64>) -> Self {
        let count = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / count;
        let squares: f64 = draws.iter().map(|x| (x - mean).powi(2)).sum();
        draws.sort_by(f64::total_cmp);
        Self {
            mean,
            sd: (squares / (count - 1.0).max(1.0)).sqrt(),
            interval: [quantile(&draws, 0.05), quantile(&draws, 0.95)],
        }
    }
}

/// One line of a curve. The line shows the expected response, or the probability of a category, as a function of a
/// column.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The name of the column that varies along the line.
    pub column: String,
    /// The values of this column along the line.
    pub at: Vec<String>,
    /// The name of a second column and its value on this line, or `None` if the curve depends on one column only.
    pub by: Option<(String, String)>,
    /// The category whose probability the line shows, or `None` if the responses are not categories.
    pub category: Option<String>,
    /// The expected response, or the probability of the category, at each value of the column.
    pub expected: Vec<EffectSummary>,
}

/// Computes the curves of a regression from the folder of its fit. A numeric column varies from its smallest to its
/// largest value, and a factor varies over its levels. All other columns have their mean or their first level. Group
/// effects are not included.
///
/// # Errors
/// Fails if the folder does not contain a regression, or if its curves cannot be evaluated.
pub fn curves(folder: &Path, threads: usize, halt: Halt) -> Result<Vec<Line>, Error> {
    let (run, stored) = StoredFit::open(folder)?;
    let kept = Kept::read(&run)?;
    let (draws, _): (DrawsTable, _) = read_draws_csv(&run.artefact(Artefact::DrawsCsv))?;
    let Some(curves) = &kept.curves else {
        return Err(Error::Input(
            "no column of this regression has a curve; `jensen regress predict` predicts the rows of a table".to_owned(),
        ));
    };
    let build = Build {
        seed: stored.flags.seed(),
        simd: stored.flags.simd()?,
        threads,
        halt,
        ..Build::default()
    };
    lines(curves, &draws, build)
}

fn lines(kept: &KeptCurves, draws: &DrawsTable, build: Build<'_>) -> Result<Vec<Line>, Error> {
    let data = DataSet::from_json(kept.data.as_bytes(), "curves")?;
    let expected = Expected::of(&kept.program, &data, draws, build)?;
    let categories: Vec<Option<String>> =
        match kept.categories.is_empty() || expected.categories == 1 {
            true => vec![None],
            false => kept.categories.iter().cloned().map(Some).collect(),
        };
    let (mut lines, mut first) = (Vec::new(), 0);
    for curve in &kept.curves {
        let numbers = curve.at.iter().map(ToString::to_string);
        let at: Vec<String> = numbers.chain(curve.levels.iter().cloned()).collect();
        for line in 0..curve.lines() {
            let points = first..first + curve.points();
            first = points.end;
            for (number, category) in categories.iter().enumerate() {
                let summary = |row: usize| EffectSummary::of(expected.draws(row, number).collect());
                lines.push(Line {
                    column: curve.column.clone(),
                    at: at.clone(),
                    by: curve
                        .by
                        .as_ref()
                        .map(|(name, values)| (name.clone(), values[line].clone())),
                    category: category.clone(),
                    expected: points.clone().map(summary).collect(),
                });
            }
        }
    }
    Ok(lines)
}

struct Expected {
    table: DrawsTable,
    first: usize,
    rows: usize,
    categories: usize,
}

impl Expected {
    fn of(
        program: &str,
        data: &DataSet,
        draws: &DrawsTable,
        build: Build<'_>,
    ) -> Result<Self, Error> {
        let seed = build.seed;
        let build = Build {
            save: Save::of_words("expected"),
            ..build
        };
        let generator = Generator::compile(program, "effects.stan", data, &build)?;
        let sample = generator.generate(draws, seed)?;
        let (mut first, mut found) = (0, None);
        for variable in &sample.variables {
            if variable.name == "expected" {
                found = Some((first, variable.shape.to_vec()));
            }
            first += variable.len();
        }
        let Some((first, shape)) = found else {
            return Err(Error::Input(
                "the program for new rows has no expected values".to_owned(),
            ));
        };
        Ok(Self {
            table: sample.table,
            first,
            rows: shape[0],
            categories: shape.get(1).copied().unwrap_or(1),
        })
    }

    /// Returns the draws of one element. Matrices are stored in column-major order.
    fn draws(&self, row: usize, category: usize) -> impl Iterator<Item = f64> {
        let at = self.first + category * self.rows + row;
        (0..self.table.len()).map(move |draw| self.table.row(draw)[at])
    }
}

pub(crate) fn section(kept: &[u8], draws: &DrawsTable, build: Build<'_>) -> Option<Exhibit> {
    let kept: Kept = serde_json::from_slice(kept).ok()?;
    let curves = kept.curves.as_ref()?;
    let lines = lines(curves, draws, build).ok()?;
    let response = kept
        .request
        .formulas
        .first()?
        .split(['~', '|'])
        .next()?
        .trim()
        .to_owned();
    let probabilities = !response.starts_with("mvbind");
    let mut figures: Vec<(Figure, String)> = Vec::new();
    let mut rest = lines.as_slice();
    for curve in curves.curves.iter().take(DRAWN) {
        let count = rest.iter().take_while(|line| {
            line.column == curve.column
                && line.by.as_ref().map(|(name, _)| name) == curve.by.as_ref().map(|(name, _)| name)
        });
        let (own, after) = rest.split_at(count.count().min(rest.len()));
        rest = after;
        figures.push(figure(curve, own, &response, probabilities));
    }
    Some(Exhibit {
        heading: "How does the response depend on each column?".to_owned(),
        note: format!(
            "The expected {response} along each column, with other columns at their means or first levels and \
             without group effects. Bands are 90 % intervals of the posterior. `jensen regress curves` writes \
             the numbers, and `jensen regress effects` averages over rows."
        ),
        figures,
        ..Exhibit::default()
    })
}

/// Draws one curve. Its lines show the means of several responses or the probabilities of categories.
fn figure(curve: &Curve, lines: &[Line], response: &str, probabilities: bool) -> (Figure, String) {
    let mut chart = Chart::new("")
        .x(Axis::new(&curve.column))
        .y(Axis::new(response));
    for line in lines {
        let x = |at: usize| curve.at.get(at).copied().unwrap_or((at + 1) as f64);
        let points = line
            .expected
            .iter()
            .enumerate()
            .map(|(at, s)| (x(at), s.mean));
        let band: Vec<(f64, f64)> = line
            .expected
            .iter()
            .map(|s| (s.interval[0], s.interval[1]))
            .collect();
        let mut name: Vec<String> = line
            .by
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        name.extend(line.category.iter().map(|category| match probabilities {
            true => format!("P({category})"),
            false => category.clone(),
        }));
        let name = if name.is_empty() {
            "expected".to_owned()
        } else {
            name.join(", ")
        };
        let series = Series::line(&name, points).band(band);
        chart = chart.series(if curve.at.is_empty() {
            series.marked()
        } else {
            series
        });
    }
    let mut caption = match &curve.by {
        Some((by, _)) => format!("{} by {by}", curve.column),
        None => curve.column.clone(),
    };
    if curve.at.is_empty() {
        let levels = curve.levels.iter().enumerate();
        let levels: Vec<String> = levels
            .map(|(at, level)| format!("{}: {level}", at + 1))
            .collect();
        caption += &format!(" ({})", levels.join(", "));
    }
    (Figure::new("").panel(chart), caption + ".")
}

/// The average effect of a column on the expected response.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// The name of the column.
    pub column: String,
    /// The contrast that defines the effect: `dY/dX` for a numeric column, or the two levels of a factor.
    pub contrast: String,
    /// The category whose probability the effect describes, or `None` if the responses are not categories.
    pub category: Option<String>,
    /// The effect, averaged over the rows of the table.
    pub estimate: EffectSummary,
}

/// Computes the average effects of columns over the rows of a table. The definitions are those of the R package
/// marginaleffects (Arel-Bundock, Greifer and Heiss, Journal of Statistical Software 111, 2024). The effect of a
/// numeric column is the mean slope of the expected response. The effect of a factor is the mean difference of the
/// expected response between each level and the first level. Rows keep their groups. If the response is a number of
/// successes among trials, the expected response is a probability.
///
/// # Errors
/// Fails if the folder does not contain a regression, if a column is missing, or if a column has values that did not
/// occur in the fit.
pub fn effects(
    folder: &Path,
    frame: &Frame,
    threads: usize,
    halt: Halt,
) -> Result<Vec<Effect>, Error> {
    let (run, stored) = StoredFit::open(folder)?;
    let kept = Kept::read(&run)?;
    let (draws, _): (DrawsTable, _) = read_draws_csv(&run.artefact(Artefact::DrawsCsv))?;
    let fitted = stored.source(&run)?.values()?;
    let mut found = Vec::new();
    for contrast in contrasts(&kept.request, frame)? {
        let mut sums: Vec<Vec<f64>> = Vec::new();
        let (mut rows, mut categories) = (0, Vec::new());
        for (table, sign) in [(&contrast.to, 1.0), (&contrast.from, -1.0)] {
            rows = 0;
            let places: Vec<usize> = (0..table.rows()).collect();
            for part in places.chunks(ROWS) {
                let regression = jensen_regress::Regression::for_rows(
                    &kept.request,
                    &kept.learnt,
                    &table.rows_of(part),
                )?
                .of_one_trial();
                let made = jensen_regress::predictions(&regression, &fitted)?;
                let build = Build {
                    seed: stored.flags.seed(),
                    simd: stored.flags.simd()?,
                    threads,
                    halt: halt.clone(),
                    ..Build::default()
                };
                let expected = Expected::of(&made.text, &made.data, &draws, build)?;
                rows += expected.rows;
                categories = regression.observed.categories;
                sums.resize(expected.categories, vec![0.0; expected.table.len()]);
                for (category, sums) in sums.iter_mut().enumerate() {
                    for row in 0..expected.rows {
                        sums.iter_mut()
                            .zip(expected.draws(row, category))
                            .for_each(|(sum, x)| *sum += sign * x);
                    }
                }
            }
        }
        let by = contrast.step * rows as f64;
        let several = sums.len() > 1;
        for (category, sums) in sums.into_iter().enumerate() {
            found.push(Effect {
                column: contrast.column.clone(),
                contrast: contrast.name.clone(),
                category: several.then(|| categories.get(category).cloned().unwrap_or_default()),
                estimate: EffectSummary::of(sums.into_iter().map(|sum| sum / by).collect()),
            });
        }
    }
    Ok(found)
}
