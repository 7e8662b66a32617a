//! The design of a formula without a response, such as `~ year + source`, for methods that have their own model of the
//! responses.

use crate::asked::{columns, complete};
use crate::design::{Contrasts, Design, design};
use crate::effects::{Curve, curves};
use crate::error::{Error, Result};
use crate::evaluate::{Evaluator, States};
use crate::formula::{Formula, Terms};
use crate::frame::Frame;
use crate::rank::dependent;
use crate::regression::Request;

/// The columns of a formula over the complete rows of a table.
#[derive(Debug)]
pub struct Covariates {
    /// The indices of the rows in which no column of the formula is missing.
    pub rows: Vec<usize>,
    /// The design over these rows, which begins with a column of ones.
    pub design: Design,
    formula: Formula,
    terms: Terms,
    states: States,
}

impl Covariates {
    /// Evaluates a formula. The `~` may be omitted. `response` is a name for the response in messages.
    ///
    /// # Errors
    /// Fails if the formula is invalid, if the table lacks a column, or if the formula has terms other than functions of
    /// columns and their products: group effects, smooths or offsets.
    pub fn new(text: &str, response: &str, frame: &Frame) -> Result<Self> {
        let right = text.trim().trim_start_matches('~').trim();
        if right.is_empty() {
            return Err(Error::new("the formula is empty")
                .help("write the columns, such as '~ year + source'"));
        }
        if let Some((left, _)) = right.split_once('~') {
            return Err(Error::new(format!(
                "the formula has `{}` on its left side",
                left.trim()
            ))
            .help("write only the columns, such as '~ year + source'"));
        }
        let formula = Formula::parse(&format!("{response} ~ {right}"))?;
        let terms = formula.terms(frame.names())?;
        let unsupported = terms.special.first().or(terms.offsets.first());
        if let Some(expr) = unsupported {
            return Err(Error::at(
                &formula.text,
                expr.span,
                format!("`{expr}` is not possible here"),
            )
            .help(
                "use columns, their functions such as poly(x, 3) or ns(x, df = 4), and products",
            ));
        }
        if let Some(group) = terms.groups.first() {
            return Err(Error::new(format!(
                "the group effect `{}` is not possible here",
                group.name()
            ))
            .help("use the column of groups as a factor"));
        }
        if terms.fixed.is_empty() {
            return Err(Error::new("the formula has no column")
                .help("write the columns, such as '~ year + source'"));
        }
        if !terms.intercept {
            return Err(Error::new("the formula has no intercept")
                .help("remove `0 +` or `- 1`: effects are differences from a level"));
        }
        let mut named = Vec::new();
        columns(&terms, true, &mut named);
        let (rows, _) = complete(frame, &named, &formula.text)?;
        if rows.is_empty() {
            return Err(Error::new(
                "no row of the table has values in all columns of the formula",
            ));
        }
        let mut made = Self {
            rows,
            design: Design::default(),
            formula,
            terms,
            states: States::default(),
        };
        let mut states = States::default();
        made.design = made.evaluated(&frame.rows_of(&made.rows), &mut states, true)?;
        made.states = states;
        Ok(made)
    }

    /// Returns the name of the first column that is a linear combination of a constant and other columns, with the names of
    /// those columns. Constant columns are ignored.
    pub fn dependent(&self) -> Option<(&str, Vec<&str>)> {
        let Design { names, columns } = &self.design;
        let varies = |column: &[f64]| column.iter().any(|x| *x != column[0]);
        let used: Vec<usize> = (0..columns.len())
            .filter(|at| varies(&columns[*at]))
            .collect();
        let chosen: Vec<Vec<f64>> = used.iter().map(|at| columns[*at].clone()).collect();
        let (at, others) = dependent(&chosen, true)?;
        let name = |at: usize| names[used[at]].as_str();
        Some((name(at), others.into_iter().map(name).collect()))
    }

    /// Evaluates the columns in the rows of another table, with the levels and the states of the first one.
    ///
    /// # Errors
    /// Fails if the table lacks a column or a level is new.
    pub fn at(&self, frame: &Frame) -> Result<Design> {
        self.evaluated(frame, &mut self.states.clone(), false)
    }

    fn evaluated(&self, frame: &Frame, states: &mut States, learning: bool) -> Result<Design> {
        let mut evaluator = Evaluator {
            frame,
            states,
            learning,
            text: &self.formula.text,
        };
        design(&self.terms, Contrasts::default(), &mut evaluator)
    }

    /// Builds one curve for every column, and one for every pair of columns that occur together in a term, as
    /// [`curves()`] does.
    ///
    /// # Errors
    /// Fails if the formula is undefined at a point of a curve.
    pub fn curves(&self, frame: &Frame) -> Result<(Vec<Curve>, Frame)> {
        let request = Request {
            formulas: vec![self.formula.text.clone()],
            ..Request::default()
        };
        curves(&request, &frame.rows_of(&self.rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Factor, FrameColumn};

    fn frame() -> Frame {
        let words = ["b", "a", "c", "a"].map(Some);
        Frame::new(
            "table",
            vec![
                (
                    "x".into(),
                    FrameColumn::Numbers(vec![1.0, 2.0, f64::NAN, 5.0]),
                ),
                ("g".into(), FrameColumn::Factor(Factor::of_words(&words))),
            ],
        )
        .unwrap()
    }

    #[test]
    fn rows_with_missing_values_are_left_out_and_levels_kept() {
        let made = Covariates::new("~ x + g", "share", &frame()).unwrap();
        assert_eq!(made.rows, [0, 1, 3]);
        assert_eq!(made.design.names, ["(Intercept)", "x", "gb"]);
        assert_eq!(made.design.columns[2], [1.0, 0.0, 0.0]);
        let (curves, grid) = made.curves(&frame()).unwrap();
        assert_eq!(curves.len(), 2);
        let at = made.at(&grid).unwrap();
        assert_eq!(at.names, made.design.names);
        assert_eq!(
            at.columns[0].len(),
            curves.iter().map(Curve::points).sum::<usize>()
        );
    }

    #[test]
    fn sums_of_other_columns_are_named() {
        let made = Covariates::new("~ x + I(2 * x + 1) + g", "share", &frame()).unwrap();
        let (name, others) = made.dependent().unwrap();
        assert_eq!(
            (name, others.as_slice()),
            ("I(2 * x + 1)", ["x"].as_slice())
        );
        let made = Covariates::new("~ x + g", "share", &frame()).unwrap();
        assert!(made.dependent().is_none_or(|(name, _)| name == "gb"));
    }

    #[test]
    fn other_terms_are_refused() {
        for formula in [
            "",
            "~",
            "x + (1 | g)",
            "0 + x",
            "s(x)",
            "1",
            "y ~ x",
            "x + offset(x)",
            "z",
        ] {
            let refused = Covariates::new(formula, "share", &frame());
            assert!(refused.is_err(), "{formula}");
        }
    }
}
