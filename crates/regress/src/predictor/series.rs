//! Autoregressions of residuals, evaluated over the rows of a frame.

use super::{Maker, Predictor};
use crate::error::Result;
use crate::evaluate::argument;
use crate::syntax::{Argument, Expr, Kind};

/// An autoregression. The residual of a row depends on the residuals of earlier rows.
#[derive(Clone, Debug)]
pub struct Series {
    /// For each lag, starting at 1, and for each row, the index of the row that is this many steps earlier, if there is
    /// one.
    pub lags: Vec<Vec<Option<usize>>>,
}

impl Maker<'_, '_> {
    /// Adds the autoregression of `ar(time, gr = g, p = 1)` to a predictor. The rows of each series are ordered by
    /// `time`. If no time is given, they keep their order in the table.
    pub(super) fn series(
        &mut self,
        call: &Expr,
        arguments: &[Argument],
        made: &mut Predictor,
    ) -> Result<()> {
        if !self.evaluator.learning {
            return Ok(());
        }
        if made.parameter != "mu" || made.series.is_some() {
            return Err(self
                .error(
                    call,
                    "only the formula of the response can have an autoregression, and only one",
                )
                .help(
                    "ar() supports gaussian and student with one response, but not their mixtures",
                ));
        }
        let rows = self.evaluator.frame.rows();
        let order = self.evaluator.count(arguments, &["p"], usize::MAX, 1)?;
        let time = match argument(arguments, &["time"], 0) {
            Some(time) => self.evaluator.numbers(time)?,
            None => (0..rows).map(|row| row as f64).collect(),
        };
        let mut series = vec![0; rows];
        if let Some(by) = argument(arguments, &["gr"], usize::MAX) {
            let found = match &by.kind {
                Kind::Binary(":", left, right) => {
                    self.combined(&[(**left).clone(), (**right).clone()])?
                }
                _ => self.levels(by)?,
            };
            series = found.codes.iter().map(|code| code.unwrap_or(0)).collect();
        }
        let mut places: Vec<usize> = (0..rows).collect();
        places.sort_by(|a, b| (series[*a].cmp(&series[*b])).then(time[*a].total_cmp(&time[*b])));
        let same = |a: usize, b: usize| series[a] == series[b];
        if let Some(pair) = places
            .windows(2)
            .find(|pair| same(pair[0], pair[1]) && time[pair[0]] == time[pair[1]])
        {
            let message = format!("two rows of a series have the time {}", time[pair[0]]);
            return Err(self
                .error(call, message)
                .help("name the column that distinguishes the series: ar(time, gr = g)"));
        }
        let mut lags = vec![vec![None; rows]; order];
        for (at, row) in places.iter().enumerate() {
            for (lag, found) in lags.iter_mut().enumerate() {
                let before = at.checked_sub(lag + 1).map(|at| places[at]);
                found[*row] = before.filter(|before| same(*before, *row));
            }
        }
        if lags.iter().any(|lag| lag.iter().all(Option::is_none)) {
            return Err(self
                .error(call, format!("no series has more than {order} rows"))
                .help("use a lower p, or remove the term"));
        }
        made.series = Some(Series { lags });
        Ok(())
    }
}
