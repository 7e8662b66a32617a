//! Access to the results of a fit by the names that the program uses: the draws of a variable and the summary of a
//! scalar.

use jensen_data::{DrawsTable, ParameterSummary};

use crate::{Error, Fitted};

/// The draws of a variable.
///
/// Each draw is a slice that contains the elements of the variable in column-major order (the first index varies
/// fastest). A draw of a scalar has one element.
#[derive(Clone, Copy, Debug)]
pub struct VariableDraws<'a> {
    table: &'a DrawsTable,
    shape: &'a [usize],
    start: usize,
    elements: usize,
}

impl<'a> VariableDraws<'a> {
    /// Returns the sizes of the dimensions of the variable, or an empty slice for a scalar. A complex variable has an
    /// additional last dimension of size 2 for the real and imaginary parts.
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

    /// Returns an iterator over the draws. Each draw is a slice of all elements of the variable.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [f64]> + use<'a> {
        let Self {
            table,
            start,
            elements,
            ..
        } = *self;
        (0..table.len()).map(move |draw| &table.row(draw)[start..start + elements])
    }

    /// Returns the draws of one element of the variable. `element` is the zero-based index of the element in
    /// column-major order.
    ///
    /// # Panics
    /// Panics if the variable has no element with this index.
    pub fn element(&self, element: usize) -> impl ExactSizeIterator<Item = f64> + use<'a> {
        assert!(element < self.elements, "the variable has this element");
        self.iter().map(move |draw| draw[element])
    }

    /// Returns the mean over the draws for every element of the variable.
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
    /// Returns the draws of the parameter, transformed parameter or generated quantity with this name.
    ///
    /// # Errors
    /// Fails with [`Error::Input`] if the program reports no variable with this name. The message lists the reported
    /// variables.
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

    /// Returns the summary of a scalar with a name such as `mu` or `theta[1]`.
    ///
    /// # Errors
    /// Fails with [`Error::Input`] if the program reports no scalar with this name. The message lists the reported
    /// scalars.
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
