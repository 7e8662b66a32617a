//! Writes `draws.nc`, a NetCDF-4 file for ArviZ and xarray.
//!
//! | group | contents | dimensions |
//! | --- | --- | --- |
//! | `posterior` | every variable that belongs to no other group | `chain` (of size one), `draw`, then the variable's own |
//! | `log_likelihood`, `posterior_predictive` | the variables with these [`Roles`] | the same |
//! | `sample_stats` | `lp`, the log density of the model | `chain`, `draw` |
//! | `approximation` | for draws of an approximation, `log_p` (model), `log_q`, `log_weight` = log_p − log_q | `chain`, `draw` |
//! | `observed_data` | the data that a predictive variable predicts, such as `y` for `y_rep` | the variable's own |
//! | `constant_data` | all other data | the variable's own |
//!
//! [`Coordinates`] determine the names of the dimensions of a variable, and the labels along these dimensions.
//! Variables of the same group share dimensions of the same name and size. If the data contain a scalar with the same
//! name as a dimension, the scalar is omitted, because it is the size of this dimension. Elements are in row-major
//! order, as the format requires. The attributes of every group contain the name and the version of the library and the
//! name of the model. Variables of size zero and groups without draws are omitted. Data variables are omitted if no
//! model can declare their names.

use std::path::Path;

use crate::coordinates::Coordinates;
use crate::dataset::DataSet;
use crate::draws::DrawsTable;
use crate::error::DataError;

#[cfg(feature = "netcdf")]
mod encode;

/// The roles of variables in ArviZ. A variable without a role belongs to the posterior.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Roles {
    /// The names of the variables that are pointwise log likelihoods.
    pub log_likelihood: Vec<String>,
    /// The names of variables that are predictions of data. For example, `y_rep` and `y_pred` predict `y`.
    pub predictive: Vec<String>,
    /// Whether the draws come from an approximation. Only such draws have weights.
    pub approximate: bool,
    /// The names of dimensions and the labels along them.
    pub coordinates: Coordinates,
}

impl Roles {
    /// Assigns roles to generated quantities according to their names.
    pub fn by_name<'a>(generated: impl Iterator<Item = &'a str>, approximate: bool) -> Self {
        let mut roles = Self {
            approximate,
            ..Self::default()
        };
        for name in generated {
            if name == "log_lik" {
                roles.log_likelihood.push(name.to_owned());
            } else if predicted(name).is_some() {
                roles.predictive.push(name.to_owned());
            }
        }
        roles
    }

    /// Returns whether a variable is a log likelihood or predicted data. Such a variable has one value per observation.
    pub fn is_pointwise(&self, name: &str) -> bool {
        let mut all = self.log_likelihood.iter().chain(&self.predictive);
        all.any(|pointwise| pointwise == name)
    }

    #[cfg(feature = "netcdf")]
    fn group(&self, name: &str) -> &'static str {
        let among = |names: &[String]| names.iter().any(|n| n == name);
        if among(&self.log_likelihood) {
            "log_likelihood"
        } else if among(&self.predictive) {
            "posterior_predictive"
        } else {
            "posterior"
        }
    }

    #[cfg(feature = "netcdf")]
    fn observes(&self, data: &str) -> bool {
        self.predictive
            .iter()
            .any(|name| predicted(name) == Some(data))
    }
}

/// Returns the name of the data that a generated quantity predicts. For `y_rep` and `y_pred`, it is `y`.
pub fn predicted(name: &str) -> Option<&str> {
    name.strip_suffix("_rep")
        .or_else(|| name.strip_suffix("_pred"))
}

/// The attributes that are written to every group.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NetcdfAttributes {
    /// The name of the model.
    pub model: String,
    /// Further attributes, in order, such as the seed or the family. The names of attributes must consist of letters,
    /// digits and `_`.
    pub extra: Vec<(String, String)>,
}

/// Whether this build can write NetCDF files.
pub const NETCDF: bool = cfg!(feature = "netcdf");

/// Writes the draws, and the data if they are given, to a NetCDF-4 file. The file is written atomically.
///
/// # Errors
/// Fails if the file cannot be written. Always fails in builds without NetCDF ([`NETCDF`]).
#[cfg(feature = "netcdf")]
pub fn write_draws_netcdf(
    path: &Path,
    table: &DrawsTable,
    roles: &Roles,
    attributes: &NetcdfAttributes,
    data: Option<&DataSet>,
) -> Result<(), DataError> {
    let bytes = encode::encode(table, roles, attributes, data)
        .map_err(|e| DataError::invalid(format!("cannot write `{}`: {e}", path.display())))?;
    crate::atomic::write_atomic_bytes(path, &bytes)
}

/// Returns an error, because this build does not include NetCDF.
///
/// # Errors
/// Always fails.
#[cfg(not(feature = "netcdf"))]
pub fn write_draws_netcdf(
    path: &Path,
    _: &DrawsTable,
    _: &Roles,
    _: &NetcdfAttributes,
    _: Option<&DataSet>,
) -> Result<(), DataError> {
    Err(DataError::invalid(format!(
        "cannot write `{}`: this build does not include NetCDF; to add it: cargo build --release -p jensen-cli",
        path.display()
    )))
}
