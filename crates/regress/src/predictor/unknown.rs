//! Columns whose values are measured with error, or are missing in some rows.

use super::{Maker, Predictor};
use crate::basis::{mean, sd};
use crate::error::Result;
use crate::frame::FrameColumn;
use crate::syntax::{Expr, Kind};

/// A column with values that are parameters of the program, in some or all rows.
#[derive(Clone, Debug)]
pub struct Unknown {
    /// The name of the column.
    pub name: String,
    /// The observed values. Missing values are replaced by the mean of the observed ones.
    pub values: Vec<f64>,
    /// The indices of the rows without an observed value.
    pub missing: Vec<usize>,
    /// The standard errors of the values, if the values are measurements.
    pub errors: Option<Vec<f64>>,
}

/// An effect of a column with unknown values on a predictor.
#[derive(Clone, Debug)]
pub struct UnknownTerm {
    /// The text of the term in reports.
    pub name: String,
    /// The name of the column.
    pub column: String,
    /// The standard deviation of the observed values.
    pub spread: f64,
}

impl Maker<'_, '_> {
    /// Adds the effect of `me(x, sd)`, where x is a measurement with known standard errors.
    pub(super) fn measured(
        &mut self,
        call: &Expr,
        column: &Expr,
        errors: &Expr,
        made: &mut Predictor,
    ) -> Result<()> {
        let values = self.evaluator.numbers(column)?;
        let noise = match self.evaluator.learning {
            true => self.evaluator.numbers(errors)?,
            false => Vec::new(),
        };
        if let Some(row) = noise.iter().position(|x| *x <= 0.0) {
            let message = format!(
                "a standard error must be above 0, but row {} of the rows used has {}",
                row + 1,
                noise[row]
            );
            return Err(self
                .error(errors, message)
                .help("write a column without errors as a plain term"));
        }
        self.unknown(
            call,
            Unknown {
                name: column.to_string(),
                values,
                missing: Vec::new(),
                errors: Some(noise),
            },
            made,
        )
    }

    /// Adds the effect of `mi(x)`, where x is a column whose missing values are imputed.
    pub(super) fn imputed(
        &mut self,
        call: &Expr,
        column: &Expr,
        made: &mut Predictor,
    ) -> Result<()> {
        let found = match &column.kind {
            Kind::Name(name) => self.evaluator.frame.column(name),
            _ => None,
        };
        let Some(FrameColumn::Numbers(x)) = found else {
            return Err(self
                .error(column, "mi() needs a column of numbers")
                .help("add a column to the table, and its formula: 'column | mi() ~ …'"));
        };
        let missing: Vec<usize> = (0..x.len()).filter(|row| x[*row].is_nan()).collect();
        let observed: Vec<f64> = x.iter().copied().filter(|x| !x.is_nan()).collect();
        let middle = mean(&observed);
        let values = x.iter().map(|x| if x.is_nan() { middle } else { *x });
        self.unknown(
            call,
            Unknown {
                name: column.to_string(),
                values: values.collect(),
                missing,
                errors: None,
            },
            made,
        )
    }

    fn unknown(&mut self, call: &Expr, unknown: Unknown, made: &mut Predictor) -> Result<()> {
        let known =
            (0..unknown.values.len()).filter(|row| unknown.missing.binary_search(row).is_err());
        let spread = sd(&known.map(|row| unknown.values[row]).collect::<Vec<_>>());
        if self.evaluator.learning && (spread.is_nan() || spread <= 0.0) {
            return Err(self
                .error(
                    call,
                    format!("all values of `{}` are the same", unknown.name),
                )
                .help("remove the term"));
        }
        made.unknown.push(UnknownTerm {
            name: call.to_string(),
            column: unknown.name.clone(),
            spread,
        });
        if !self.unknowns.iter().any(|other| other.name == unknown.name) {
            self.unknowns.push(unknown);
        }
        Ok(())
    }
}
