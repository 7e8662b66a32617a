//! Posterior draws with names and shapes. All functions that write draws take them as input.

use crate::dataset::checked_len;
use crate::error::DataError;

/// A variable of a model for which there are draws.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawsVariable {
    /// The name that the model declares. Each slot of a tuple is a separate variable, which is named `t:1` as in
    /// CmdStan.
    pub name: String,
    /// The sizes of the dimensions. The list is empty for a scalar. A complex number has an additional last dimension
    /// of size 2, for the real and the imaginary part.
    pub shape: Vec<usize>,
}

impl DrawsVariable {
    /// Creates a variable with the given name and dimensions.
    pub fn new(name: impl Into<String>, shape: impl Into<Vec<usize>>) -> Self {
        Self {
            name: name.into(),
            shape: shape.into(),
        }
    }

    /// Returns the number of scalars that the variable contributes to one draw.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns whether the variable has no elements. Such variables are omitted from files.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the names of the scalars, spelled and ordered as in CmdStan: `Sigma.1.1`, `Sigma.2.1`, `Sigma.1.2`, ….
    pub fn scalar_names(&self) -> Vec<String> {
        self.subscripted(|name, index| {
            index
                .iter()
                .fold(name.to_string(), |s, i| format!("{s}.{i}"))
        })
    }

    /// Returns the names of the scalars as they are displayed to users, such as `theta[1]` and `Sigma[2,1]`. The order
    /// is the same as that of [`scalar_names`](Self::scalar_names).
    pub fn display_names(&self) -> Vec<String> {
        self.subscripted(|name, index| {
            if index.is_empty() {
                return name.to_string();
            }
            let parts: Vec<_> = index.iter().map(usize::to_string).collect();
            format!("{name}[{}]", parts.join(","))
        })
    }

    pub(crate) fn subscripted(&self, spell: impl Fn(&str, &[usize]) -> String) -> Vec<String> {
        let mut index = vec![1; self.shape.len()];
        let mut names = Vec::with_capacity(self.len());
        for _ in 0..self.len() {
            names.push(spell(&self.name, &index));
            for (i, size) in index.iter_mut().zip(&self.shape) {
                *i += 1;
                if *i <= *size {
                    break;
                }
                *i = 1;
            }
        }
        names
    }
}

/// Returns whether a name can be used both in the header of a CSV file and as a path in a NetCDF file.
pub(crate) fn is_storable_name(name: &str) -> bool {
    let breaks = |c: char| c.is_control() || c.is_whitespace() || "\"'.,/#".contains(c);
    !name.is_empty() && !name.contains(breaks)
}

/// Draws from an approximation, with the log densities that are needed to assess them.
///
/// `draws` has one row per draw. A row contains the variables one after another. The scalars of a variable are in
/// **column-major** order, in which the first index changes fastest, as in the columns of CmdStan's CSV files.
#[derive(Debug, Clone, PartialEq)]
pub struct DrawsTable {
    variables: Vec<DrawsVariable>,
    width: usize,
    draws: Vec<f64>,
    log_p: Vec<f64>,
    log_g: Vec<f64>,
    mean: Option<Vec<f64>>,
}

impl DrawsTable {
    /// Creates a table of `log_p.len()` draws, after checking the names and the lengths. `draws` has one row per draw,
    /// and each row contains all scalars of all variables.
    ///
    /// `log_p` is the log density of the model at each draw. It refers to the unconstrained scale and includes the
    /// log-Jacobian. `log_g` is the log density of the approximation. For each draw, the log importance weight is
    /// `log_p − log_g`.
    pub fn new(
        variables: Vec<DrawsVariable>,
        draws: Vec<f64>,
        log_p: Vec<f64>,
        log_g: Vec<f64>,
    ) -> Result<Self, DataError> {
        let width = variables
            .iter()
            .try_fold(0usize, |sum, v| sum.checked_add(checked_len(&v.shape)?));
        let expected = width.and_then(|w| w.checked_mul(log_p.len()));
        if expected != Some(draws.len()) || log_g.len() != log_p.len() {
            return Err(DataError::invalid(format!(
                "{} numbers do not match {} draws of {} scalars ({} values of log g)",
                draws.len(),
                log_p.len(),
                width.unwrap_or(usize::MAX),
                log_g.len()
            )));
        }
        for (i, v) in variables.iter().enumerate() {
            if !is_storable_name(&v.name) {
                return Err(DataError::invalid(format!(
                    "`{}` cannot name a variable: names must not be empty or have spaces, quotes or any of `. \
                     , / #`",
                    v.name.escape_debug()
                )));
            }
            if variables[..i].iter().any(|w| w.name == v.name) {
                return Err(DataError::invalid(format!(
                    "draws of the variable `{}` appear twice",
                    v.name
                )));
            }
        }
        Ok(Self {
            width: variables.iter().map(DrawsVariable::len).sum(),
            variables,
            draws,
            log_p,
            log_g,
            mean: None,
        })
    }

    /// Adds the values of all scalars at the mean of the approximation. `mean` has the layout of a [row](Self::row).
    ///
    /// # Errors
    /// Fails if `mean` does not have the length of a row.
    pub fn with_mean(mut self, mean: Vec<f64>) -> Result<Self, DataError> {
        if mean.len() != self.width {
            return Err(DataError::invalid(format!(
                "{} values at the mean do not match draws of {} scalars",
                mean.len(),
                self.width
            )));
        }
        self.mean = Some(mean);
        Ok(self)
    }

    /// Discards all draws except the first `draws`.
    #[must_use]
    pub fn first(mut self, draws: usize) -> Self {
        self.draws.truncate(draws.saturating_mul(self.width));
        self.log_p.truncate(draws);
        self.log_g.truncate(draws);
        self
    }

    /// Returns the variables in order.
    pub fn variables(&self) -> &[DrawsVariable] {
        &self.variables
    }

    /// Returns the number of draws.
    pub fn len(&self) -> usize {
        self.log_p.len()
    }

    /// Returns whether there are no draws.
    pub fn is_empty(&self) -> bool {
        self.log_p.is_empty()
    }

    /// Returns the number of scalars per draw.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns one draw. The variables follow one another, and each of them is in column-major order.
    pub fn row(&self, draw: usize) -> &[f64] {
        &self.draws[draw * self.width..(draw + 1) * self.width]
    }

    /// Returns all draws of one scalar. `scalar` is the index of its column.
    pub fn column(&self, scalar: usize) -> Vec<f64> {
        (0..self.len()).map(|d| self.row(d)[scalar]).collect()
    }

    /// Returns the values at the unconstrained mean of the approximation, if they are known. These values differ from
    /// the means of the values in the draws. For example, the mean of log σ corresponds to the median of σ.
    pub fn mean(&self) -> Option<&[f64]> {
        self.mean.as_deref()
    }

    /// Returns the log density of the model at each draw.
    pub fn log_p(&self) -> &[f64] {
        &self.log_p
    }

    /// Returns the log density of the approximation at each draw.
    pub fn log_g(&self) -> &[f64] {
        &self.log_g
    }

    /// Returns the log importance weights `log_p − log_g`. The weights are neither smoothed nor normalised.
    pub fn log_weights(&self) -> Vec<f64> {
        self.log_p
            .iter()
            .zip(&self.log_g)
            .map(|(p, g)| p - g)
            .collect()
    }

    /// Returns the names of all scalars as CmdStan spells them, in the order of the columns.
    pub fn scalar_names(&self) -> Vec<String> {
        self.variables
            .iter()
            .flat_map(DrawsVariable::scalar_names)
            .collect()
    }
}
