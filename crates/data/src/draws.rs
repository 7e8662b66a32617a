//! Posterior draws with names and shapes, which the writers of draws take as input.

use crate::dataset::checked_len;
use crate::error::DataError;

/// A variable of a model with draws.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawsVariable {
    /// The name as the model declares it. Each slot of a tuple is a separate variable, named `t:1` as in CmdStan.
    pub name: String,
    /// The sizes of the dimensions, which are empty for a scalar. A complex number has a trailing dimension of size 2
    /// (real, imaginary).
    pub shape: Vec<usize>,
}

impl DrawsVariable {
    /// Creates a variable with the given name and sizes.
    pub fn new(name: impl Into<String>, shape: impl Into<Vec<usize>>) -> Self {
        Self {
            name: name.into(),
            shape: shape.into(),
        }
    }

    /// Returns the number of scalars in one draw.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns whether the variable has no elements. Writers omit these variables.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the names of the scalars in the order and spelling of CmdStan: `Sigma.1.1`, `Sigma.2.1`, `Sigma.1.2`, …
    pub fn scalar_names(&self) -> Vec<String> {
        self.subscripted(|name, index| {
            index
                .iter()
                .fold(name.to_string(), |s, i| format!("{s}.{i}"))
        })
    }

    /// Returns the names of the scalars in the same order and in the notation for users: `theta[1]`, `Sigma[2,1]`.
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

/// Returns whether a name is valid in the header of a CSV file and as a path in a NetCDF file.
pub(crate) fn is_storable_name(name: &str) -> bool {
    let breaks = |c: char| c.is_control() || c.is_whitespace() || "\"'.,/#".contains(c);
    !name.is_empty() && !name.contains(breaks)
}

/// Draws from an approximation, with the log densities that are needed to assess them.
///
/// `draws` has one row per draw. A row contains the variables one after the other, and the scalars of a variable are in
/// **column-major** order (first index fastest), like the columns of CmdStan's CSV.
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
    /// Creates a table of `log_p.len()` draws, and checks names and lengths. `draws` has one row per draw, with all
    /// scalars of the variables.
    ///
    /// `log_p` is the log density of the model at each draw on the unconstrained scale, including the log-Jacobian, and
    /// `log_g` is the log density of the approximation. The log importance weight is `log_p − log_g`.
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

    /// Adds the values at the mean of the approximation, in the layout of a [row](Self::row).
    ///
    /// # Errors
    /// Fails if the number of values differs from the length of a row.
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

    /// Keeps at most the first `draws` draws.
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

    /// Returns one draw, with all variables in column-major order.
    pub fn row(&self, draw: usize) -> &[f64] {
        &self.draws[draw * self.width..(draw + 1) * self.width]
    }

    /// Returns all draws of one scalar. `scalar` is the index of the scalar among all scalars, in column order.
    pub fn column(&self, scalar: usize) -> Vec<f64> {
        (0..self.len()).map(|d| self.row(d)[scalar]).collect()
    }

    /// Returns the values at the unconstrained mean of the approximation, if known. This is not the mean of the values.
    /// For example, the mean of log σ corresponds to the median of σ.
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

    /// Returns the log importance weights `log_p − log_g`, neither smoothed nor normalised.
    pub fn log_weights(&self) -> Vec<f64> {
        self.log_p
            .iter()
            .zip(&self.log_g)
            .map(|(p, g)| p - g)
            .collect()
    }

    /// Returns CmdStan's names of all scalars in column order.
    pub fn scalar_names(&self) -> Vec<String> {
        self.variables
            .iter()
            .flat_map(DrawsVariable::scalar_names)
            .collect()
    }
}
