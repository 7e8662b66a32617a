//! The results of a fit by the names in the program: the draws of a variable and the summary of a scalar.

use jensen_data::{DrawsTable, ParameterSummary};

use crate::{Error, Fitted};

/// The draws of a variable.
///
/// A draw is a slice of the variable's elements in column-major order (first index fastest), and has one element for a
/// scalar.
#[derive(Clone, Copy, Debug)]
pub struct VariableDraws<'a> {
    table: &'a DrawsTable,
    shape: &'a [usize],
    start: usize,
    elements: usize,
}

impl<'a> VariableDraws<'a> {
    /// Returns the sizes of the variable. They are empty for a scalar. A complex number has a trailing size of 2 (real,
    /// imaginary).
    pub fn shape(&self) -> &'a [usize] {
        self.shape
    }

    /// Returns the number of draws.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns whether there are no draws.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Returns the draws in order. Each draw is a slice of all elements.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [f64]> + use<'a> {
        let Self {
            table,
            start,
            elements,
            ..
        } = *self;
        (0..table.len()).map(move |draw| &table.row(draw)[start..start + elements])
    }

    /// Returns the draws of an element. `element` is its position in column-major order, from 0.
    ///
    /// # Panics
    /// Panics if the variable has no such element.
    pub fn element(&self, element: usize) -> impl ExactSizeIterator<Item = f64> + use<'a> {
        assert!(element < self.elements, "the variable has this element");
        self.iter().map(move |draw| draw[element])
    }

    /// Returns the mean of every element over the draws.
    pub fn mean(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.elements];
        for draw in self.iter() {
            sums.iter_mut().zip(draw).for_each(|(sum, x)| *sum += x);
        }
        let count = self.len() as f64;
        sums.into_iter().map(|sum| sum / count).collect()
    }
}

impl Fitted {
    /// Returns the draws of a parameter, a transformed parameter or a generated quantity.
    ///
    /// # Errors
    /// Fails with [`Error::Input`] if the program reports no such variable. The message lists the variables.
    pub fn draws(&self, name: &str) -> Result<VariableDraws<'_>, Error> {
        let table = &self.sample.table;
        let mut start = 0;
        for variable in table.variables() {
            let elements = variable.len();
            if variable.name == name {
                return Ok(VariableDraws {
                    table,
                    shape: &variable.shape,
                    start,
                    elements,
                });
            }
            start += elements;
        }
        let names = table.variables().iter().map(|variable| &*variable.name);
        Err(unknown("variable", name, names))
    }

    /// Returns the summary of a scalar, such as `mu` or `theta[1]`.
    ///
    /// # Errors
    /// Fails with [`Error::Input`] if the program reports no such scalar. The message lists the scalars.
    pub fn parameter(&self, name: &str) -> Result<&ParameterSummary, Error> {
        let found = self.summaries.iter().find(|summary| summary.name == name);
        let names = self.summaries.iter().map(|summary| &*summary.name);
        found.ok_or_else(|| unknown("scalar", name, names))
    }
}

const LISTED: usize = 8;

fn unknown<'n>(what: &str, name: &str, names: impl Iterator<Item = &'n str>) -> Error {
    let names: Vec<&str> = names.collect();
    let listed: Vec<String> = names
        .iter()
        .take(LISTED)
        .map(|name| format!("`{name}`"))
        .collect();
    let more = if names.len() > LISTED { ", …" } else { "" };
    Error::Input(format!(
        "there is no {what} `{name}`; the {what}s are {}{more}",
        listed.join(", ")
    ))
}
